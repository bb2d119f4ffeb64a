//go:build engines

package container

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/docker/docker/api/types/image"

	"switchyard/activities/executor"
	"switchyard/activities/executor/container/enginetest"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

func TestLocalImageIsNotPulled(t *testing.T) {
	t.Parallel()
	docker := enginetest.Engine(t)
	name := ownImage(t)
	want, err := docker.ImageInspect(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range []string{"", pullIfAbsent, pullNever} {
		got, err := newFor(t, Options{}).images.ensureImage(t.Context(), &v1.ContainerSpec{Image: name, PullPolicy: policy}, nil)
		if err != nil || got != want.ID {
			t.Errorf("%q: %s, %v; want %s", policy, got, err, want.ID)
		}
	}
}

func TestMissingImageIsPulled(t *testing.T) {
	t.Parallel()
	y, e := newFakeRegistry(t), newFor(t, Options{})
	name, digest := y.push(t, "a/b:1", 2)
	var lines []string
	spec := &v1.ContainerSpec{Image: name}
	got, err := e.images.ensureImage(t.Context(), spec, func(line string) { lines = append(lines, line) })
	if err != nil || got != digest {
		t.Fatalf("%s, %v; want %s", got, err, digest)
	}
	all := strings.Join(lines, "\n")
	if lines[0] != "pulling image "+name || !strings.Contains(all, "Pull complete") || !strings.Contains(all, "Digest: sha256:") {
		t.Errorf("the progress is\n%s", all)
	}
	before, _ := y.counts()
	if got, err = e.images.ensureImage(t.Context(), spec, nil); err != nil || got != digest {
		t.Fatalf("the second time: %s, %v", got, err)
	}
	if after, _ := y.counts(); after != before {
		t.Error("it was pulled again")
	}
	// The digest names the same image.
	if got, err = e.images.ensureImage(t.Context(), &v1.ContainerSpec{Image: digest}, nil); err != nil || got != digest {
		t.Errorf("by digest: %s, %v", got, err)
	}
}

func TestPullPolicyAlwaysPullsAgain(t *testing.T) {
	t.Parallel()
	y, e := newFakeRegistry(t), newFor(t, Options{})
	name, _ := y.push(t, "a/always:1", 1)
	spec := &v1.ContainerSpec{Image: name, PullPolicy: pullAlways}
	if _, err := e.images.ensureImage(t.Context(), spec, nil); err != nil {
		t.Fatal(err)
	}
	_, digest := y.push(t, "a/always:1", 1)
	got, err := e.images.ensureImage(t.Context(), spec, nil)
	if err != nil || got != digest {
		t.Errorf("%s, %v; the new one is %s", got, err, digest)
	}
}

func TestPullPolicyNeverDoesNotPull(t *testing.T) {
	t.Parallel()
	y, e := newFakeRegistry(t), newFor(t, Options{})
	name, _ := y.push(t, "a/never:1", 1)
	_, err := e.images.ensureImage(t.Context(), &v1.ContainerSpec{Image: name, PullPolicy: pullNever}, nil)
	if err == nil || executor.AsStartError(err) != nil || !strings.Contains(err.Error(), "image "+name+" is not on ") || !strings.Contains(err.Error(), `pullPolicy is "never"`) {
		t.Error(err)
	}
	if manifests, _ := y.counts(); manifests != 0 {
		t.Error("the registry was asked")
	}
}

func TestUnavailableImageIsAFaultOfTheNode(t *testing.T) {
	t.Parallel()
	y, e := newFakeRegistry(t), newFor(t, Options{})
	for name, want := range map[string]string{
		y.host + "/a/none:1":                "pull image " + y.host + "/a/none:1: ",
		"127.0.0.1:1/a:1":                   "connection refused",
		"sha256:" + strings.Repeat("0", 64): "an id cannot be pulled",
	} {
		_, err := e.images.ensureImage(t.Context(), &v1.ContainerSpec{Image: name}, nil)
		if err == nil || executor.AsStartError(err) != nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; it should say %q, and be the node's fault", name, err, want)
		}
	}
}

// TestConcurrentAttemptsShareOnePull starts 20 attempts with the same image at once.
func TestConcurrentAttemptsShareOnePull(t *testing.T) {
	t.Parallel()
	y, e := newFakeRegistry(t), newFor(t, Options{})
	const layers = 3
	name, digest := y.push(t, "a/one:1", layers)
	release := y.hold(t)
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			got, err := e.images.ensureImage(t.Context(), &v1.ContainerSpec{Image: name}, nil)
			if err != nil || got != digest {
				t.Errorf("%s, %v", got, err)
			}
		})
	}
	testneeds.Await(t, "it comes", func() bool { return e.images.pulls.Waiting() == 20 })
	release()
	all.Wait()
	// The engine also merges pulls of the same image, but requests the manifest each time.
	if manifests, blobs := y.counts(); manifests > 2 || blobs != layers+1 {
		t.Errorf("%d manifests and %d blobs were asked for, for an image of %d layers", manifests, blobs, layers)
	}
}

// TestPullEndsWithItsLastCaller checks that a caller that leaves does not end the pull for the others,
// and that the pull ends when the last caller leaves.
func TestPullEndsWithItsLastCaller(t *testing.T) {
	t.Parallel()
	y, e := newFakeRegistry(t), newFor(t, Options{})
	name, digest := y.push(t, "a/last:1", 1)
	spec := &v1.ContainerSpec{Image: name}
	release := y.hold(t)
	ctx, cancel := context.WithCancel(t.Context())
	errs := make(chan error)
	go func() { _, err := e.images.ensureImage(ctx, spec, nil); errs <- err }()
	<-y.asked
	staying, leave := context.WithCancel(t.Context())
	go func() { _, err := e.images.ensureImage(staying, spec, nil); errs <- err }()
	testneeds.Await(t, "it comes", func() bool { return e.images.pulls.Waiting() == 2 })
	cancel()
	if err := <-errs; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if e.images.pulls.Waiting() != 1 {
		t.Fatal("the pull has ended for the other one")
	}
	leave()
	if err := <-errs; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	release()
	if got, err := e.images.ensureImage(t.Context(), spec, nil); err != nil || got != digest {
		t.Errorf("%s, %v", got, err)
	}
}

func TestSilentPullIsAbandoned(t *testing.T) {
	t.Parallel()
	y, e := newFakeRegistry(t), newFor(t, Options{})
	e.images.silence = 200 * time.Millisecond
	name, _ := y.push(t, "a/silent:1", 1)
	y.hold(t)
	_, err := e.images.ensureImage(t.Context(), &v1.ContainerSpec{Image: name}, nil)
	if !errors.Is(err, errSilent) {
		t.Error(err)
	}
}

func TestPullSendsCredentials(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	const secret = "a-secret-word"
	y := newFakeRegistry(t)
	name, digest := y.push(t, "a/private:1", 1)
	y.require("user:" + secret)
	file := func(password string) string {
		path := filepath.Join(t.TempDir(), "auth.json")
		if err := os.WriteFile(path, fmt.Appendf(nil, `{"username": "user", "password": %q, "registry": %q}`, password, y.host), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	e := newFor(t, Options{RegistryAuth: map[string]string{"yard": file(secret), "bad": file("another-secret")}})
	for auth, want := range map[string]string{
		"":      "there are no credentials for " + y.host + ": start the node with --registry-auth NAME=FILE",
		"bad":   "the registry rejected the credentials bad",
		"other": "--registry-auth other=FILE",
	} {
		_, err := e.images.ensureImage(t.Context(), &v1.ContainerSpec{Image: name, RegistryAuth: auth}, nil)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v; it should say %q", auth, err, want)
		}
	}
	var lines []string
	got, err := e.images.ensureImage(t.Context(), &v1.ContainerSpec{Image: name, RegistryAuth: "yard"}, func(line string) { lines = append(lines, line) })
	if err != nil || got != digest {
		t.Fatalf("%s, %v", got, err)
	}
	if slices.ContainsFunc(lines, func(line string) bool { return strings.Contains(line, secret) }) {
		t.Errorf("the secret is told in %q", lines)
	}
	// The credentials that docker login stores are used if the spec names none.
	if _, err := enginetest.Engine(t).ImageRemove(t.Context(), name, image.RemoveOptions{}); err != nil {
		t.Fatal(err)
	}
	config := fmt.Appendf(nil, `{"auths": {%q: {"username": "user", "password": %q}}}`, y.host, secret)
	if err := os.WriteFile(filepath.Join(os.Getenv("DOCKER_CONFIG"), "config.json"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := e.images.ensureImage(t.Context(), &v1.ContainerSpec{Image: name}, nil); err != nil {
		t.Error(err)
	}
}
