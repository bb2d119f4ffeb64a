//go:build engines

package container_test

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/docker/docker/api/types/container"
	"github.com/docker/docker/api/types/image"

	"switchyard/activities/environments"
	"switchyard/activities/executor"
	containers "switchyard/activities/executor/container"
	"switchyard/activities/executor/container/enginetest"
	"switchyard/activities/store"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

// configuredImage returns an image with settings of its own, such as an entrypoint, a user,
// variables and a stop signal.
func configuredImage(t *testing.T) string {
	t.Helper()
	docker := enginetest.Engine(t)
	made, err := docker.ContainerCreate(t.Context(), &container.Config{Image: enginetest.Image(t), Cmd: []string{"true"}, StopSignal: "SIGINT"}, nil, nil, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	image, err := docker.ContainerCommit(t.Context(), made.ID, container.CommitOptions{Changes: []string{
		`ENTRYPOINT ["sh", "-c"]`, `CMD ["id -u; pwd; cat /files/kept; echo $KEPT-$SECRET; cat /switchyard/private"]`, "USER worker", "WORKDIR /tmp", "ENV KEPT=yes", "LABEL made=here",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := docker.ContainerRemove(t.Context(), made.ID, container.RemoveOptions{}); err != nil {
		t.Fatal(err)
	}
	removeImage(t, image.ID)
	return image.ID
}

// removeImage removes an image from the machine's engine at the end of the test.
func removeImage(t *testing.T, name string) {
	t.Helper()
	docker := enginetest.Engine(t)
	t.Cleanup(func() {
		_, _ = docker.ImageRemove(context.Background(), name, image.RemoveOptions{Force: true})
	})
}

func library(t *testing.T) *environments.Library {
	t.Helper()
	s, err := store.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return environments.New(s)
}

// keep stores what capture writes in a library, as a version of an environment.
func keep(t *testing.T, l *environments.Library, name string, version int32, capture func(io.Writer) (executor.Captured, error)) *v1.Environment {
	t.Helper()
	archive := environments.NewArchive()
	if err := l.Reserve(t.Context(), archive, "a", name); err != nil {
		t.Fatal(err)
	}
	w := l.NewWriter(t.Context(), archive)
	captured, err := capture(w)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	e, err := l.Keep(t.Context(), &v1.Environment{
		Name: name, Kind: captured.Kind, ImageId: captured.ImageID, Version: version, Archive: w.Archive(), Size: w.Size(), Parts: int32(w.Parts()), Digest: w.Digest(),
	})
	if err != nil {
		t.Fatal(err)
	}
	removeImage(t, e.GetImageId())
	return e
}

// filesOf returns the files of a docker save archive, and the names of the files in its layer.
func filesOf(t *testing.T, archive []byte) (files map[string][]byte, layer []string) {
	t.Helper()
	files = map[string][]byte{}
	for r := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[h.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(h.Name, "/layer.tar") {
			continue
		}
		for in := tar.NewReader(bytes.NewReader(files[h.Name])); ; {
			h, err := in.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			layer = append(layer, h.Name)
		}
	}
	return files, layer
}

func TestCapturedContainerIsRunAgainWithoutItsSecrets(t *testing.T) {
	t.Parallel()
	l := library(t)
	e := newExecutor(t, containers.Options{Environments: l, ScratchDir: t.TempDir()})
	dir := t.TempDir()
	makeTemp(t, dir)
	a, out, _ := enginetest.Attempt(t, "build", map[string]any{
		"image": configuredImage(t), "entrypoint": "sh", "user": "0", "workingDirectory": "/etc",
		"command": []any{"-c", "mkdir /files; echo captured > /files/kept; echo mounted > /switchyard/private; echo ready; while :; do sleep 0.05; done"},
	})
	const secret = "a-secret-word"
	a.Dirs.Workspace, a.Env = dir, map[string]string{"SECRET": secret, "SWITCHYARD_RUN_ID": "r"}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := enginetest.Begin(t, ctx, e, a)
	out.Await(t, "ready")
	var archive bytes.Buffer
	name := "captured-" + strings.ToLower(a.Identity.Run)
	kept := keep(t, l, name, 0, func(w io.Writer) (executor.Captured, error) {
		return e.Capture(t.Context(), a.ID, io.MultiWriter(w, &archive))
	})
	if _, err := enginetest.Engine(t).ImageInspect(t.Context(), kept.GetImageId()); err == nil {
		t.Errorf("the engine has %s after the capture", kept.GetImageId())
	}
	files, layer := filesOf(t, archive.Bytes())
	if !slices.Contains(layer, "files/kept") || slices.Contains(layer, "switchyard/private") {
		t.Errorf("it holds %v", layer)
	}
	if bytes.Contains(archive.Bytes(), []byte(secret)) || bytes.Contains(archive.Bytes(), []byte("SWITCHYARD_RUN_ID")) {
		t.Error("the archive holds the variables of the attempt")
	}
	var config struct {
		Config struct {
			Entrypoint, Env  []string
			User, WorkingDir string
			StopSignal       string
			Labels           map[string]string
		}
	}
	for name, data := range files {
		if name != "manifest.json" && strings.HasSuffix(name, ".json") {
			if err := json.Unmarshal(data, &config); err != nil {
				t.Fatal(err)
			}
		}
	}
	c := config.Config
	if !slices.Equal(c.Entrypoint, []string{"sh", "-c"}) || c.User != "worker" || c.WorkingDir != "/tmp" || c.StopSignal != "SIGINT" ||
		!slices.Equal(c.Env, []string{"PATH=/bin", "KEPT=yes"}) || !maps.Equal(c.Labels, map[string]string{"made": "here"}) {
		t.Errorf("its configuration is %+v", c)
	}
	cancel()
	if r := enginetest.End(t, ended); r.Err != nil || !r.Stopped {
		t.Errorf("the captured one: %+v, %v", r.Result, r.Err)
	}

	again, said, errs := enginetest.Attempt(t, "build", map[string]any{"environment": name, "image": ""})
	var lines []string
	again.Notify = func(line string) { lines = append(lines, line) }
	r, err := e.Run(t.Context(), again, func() {})
	if err != nil || r.Image != kept.GetImageId() {
		t.Fatalf("result %+v, error %v; it says %q", r, err, errs)
	}
	if want := "1000\n/tmp\ncaptured\nyes-\n"; said.String() != want || !strings.Contains(errs.String(), "/switchyard/private") {
		t.Errorf("it prints %q and %q, want %q", said, errs, want)
	}
	if len(lines) == 0 || !strings.HasPrefix(lines[0], "loading environment "+name+", version 1 (") {
		t.Errorf("it is told %q", lines)
	}
}

func TestContainerIsPausedWhileItIsCaptured(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, containers.Options{})
	a, out, _ := enginetest.Attempt(t, "build", map[string]any{"command": "head -c 5000000 /dev/zero > /large; echo ready; while :; do sleep 0.05; done"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := enginetest.Begin(t, ctx, e, a)
	out.Await(t, "ready")
	// Captures follow each other, so that one is in progress when other requests arrive.
	stop, captured := make(chan struct{}), make(chan error, 1)
	go func() {
		var err error
		for refused := (*executor.Refusal)(nil); err == nil || errors.As(err, &refused); {
			select {
			case <-stop:
				captured <- nil
				return
			default:
				_, err = e.Capture(t.Context(), a.ID, io.Discard)
			}
		}
		captured <- err
	}()
	var refused *executor.Refusal
	testneeds.Await(t, "it is not resumed", func() bool { return errors.As(e.Resume(t.Context(), a.ID), &refused) })
	testneeds.Await(t, "it is not captured twice", func() bool {
		_, err := e.Capture(t.Context(), a.ID, io.Discard)
		return errors.As(err, &refused)
	})
	close(stop)
	if err := <-captured; err != nil {
		t.Error(err)
	}
	if isPaused(t, a) {
		t.Error("it stands still after the captures")
	}
	if err := errors.Join(e.Pause(t.Context(), a.ID), e.Resume(t.Context(), a.ID)); err != nil {
		t.Error(err)
	}
	cancel()
	enginetest.End(t, ended)
}

// isPaused reports whether the container of an attempt is paused.
func isPaused(t *testing.T, a executor.Attempt) bool {
	t.Helper()
	c, err := enginetest.Engine(t).ContainerInspect(t.Context(), containerOf(t, a))
	if err != nil {
		t.Fatal(err)
	}
	return c.State.Paused
}

func TestPausedContainerIsCapturedAndStaysPaused(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, containers.Options{})
	a, out, _ := enginetest.Attempt(t, "build", map[string]any{"command": "echo here > /kept; echo ready; while :; do sleep 0.05; done"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := enginetest.Begin(t, ctx, e, a)
	out.Await(t, "ready")
	if err := e.Pause(t.Context(), a.ID); err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if _, err := e.Capture(t.Context(), a.ID, &archive); err != nil {
		t.Fatal(err)
	}
	if _, layer := filesOf(t, archive.Bytes()); !slices.Contains(layer, "kept") {
		t.Errorf("it holds %v", layer)
	}
	if !isPaused(t, a) {
		t.Error("it continues after the capture")
	}
	if err := e.Resume(t.Context(), a.ID); err != nil {
		t.Error(err)
	}
	cancel()
	enginetest.End(t, ended)
	if _, err := e.Capture(t.Context(), a.ID, io.Discard); !errors.Is(err, executor.ErrNotRunning) {
		t.Errorf("after its end: %v", err)
	}
}

func TestCancelledCaptureLeavesNothing(t *testing.T) {
	t.Parallel()
	scratch := t.TempDir()
	e := newExecutor(t, containers.Options{ScratchDir: scratch})
	a, out, _ := enginetest.Attempt(t, "build", map[string]any{"command": "head -c 10000000 /dev/zero > /large; echo ready; while :; do sleep 0.05; done"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := enginetest.Begin(t, ctx, e, a)
	out.Await(t, "ready")
	for _, when := range []string{"while the files are copied", "while the archive is written"} {
		capturing, giveUp := context.WithCancel(t.Context())
		if when == "while the files are copied" {
			time.AfterFunc(5*time.Millisecond, giveUp)
		}
		_, err := e.Capture(capturing, a.ID, writer(func([]byte) { giveUp() }))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", when, err)
		}
		giveUp()
		if isPaused(t, a) {
			t.Errorf("%s: it stands still", when)
		}
		if left, err := os.ReadDir(scratch); err != nil || len(left) != 0 {
			t.Errorf("%s: left %v, %v", when, left, err)
		}
	}
	cancel()
	if r := enginetest.End(t, ended); r.Err != nil || !r.Stopped {
		t.Errorf("%+v, %v", r.Result, r.Err)
	}
}

// writer is a function that receives what is written.
type writer func([]byte)

func (w writer) Write(p []byte) (int, error) {
	w(p)
	return len(p), nil
}

func TestStopEndsACaptureAndTheContainer(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, containers.Options{})
	a, out, _ := enginetest.Attempt(t, "build", map[string]any{"command": "head -c 20000000 /dev/zero > /large; echo ready; while :; do sleep 0.05; done"})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := enginetest.Begin(t, ctx, e, a)
	out.Await(t, "ready")
	captured := make(chan error, 1)
	go func() {
		_, err := e.Capture(t.Context(), a.ID, io.Discard)
		captured <- err
	}()
	testneeds.Await(t, "it is captured", func() bool { return isPaused(t, a) || len(captured) > 0 })
	cancel()
	if r := enginetest.End(t, ended); r.Err != nil || !r.Stopped {
		t.Errorf("%+v, %v", r.Result, r.Err)
	}
	if err := <-captured; err != nil && !errors.Is(err, executor.ErrNotRunning) {
		t.Errorf("the capture: %v", err)
	}
}

func TestNextWorkerResumesContainerLeftPausedByACapture(t *testing.T) {
	t.Parallel()
	a, _, _ := enginetest.Attempt(t, "build", map[string]any{"command": "echo ready; while [ ! -e /end ]; do sleep 0.05; done; exit 3"})
	abandon(t, "", a, "ready")
	e := newExecutor(t, containers.Options{})
	testneeds.Await(t, "the engine answers", func() bool { return e.Available() == nil })
	all, err := e.Survivors(t.Context(), a.Identity.Node)
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	docker := enginetest.Engine(t)
	id := containerOf(t, a)
	if err := docker.ContainerPause(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	ended := make(chan enginetest.Outcome, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		r, err := e.Reattach(ctx, a)
		ended <- enginetest.Outcome{Result: r, Err: err}
	}()
	testneeds.Await(t, "it continues", func() bool { return !isPaused(t, a) })
	cancel()
	if r := enginetest.End(t, ended); r.Err != nil || !r.Stopped {
		t.Errorf("%+v, %v", r.Result, r.Err)
	}
}

// containerOf returns the id of an attempt's container.
func containerOf(t *testing.T, a executor.Attempt) string {
	t.Helper()
	all := enginetest.Left(t, a.ID)
	if len(all) != 1 {
		t.Fatalf("it has the containers %v", all)
	}
	return all[0].ID
}

func TestCapturedImageIsLoadedUnderItsID(t *testing.T) {
	t.Parallel()
	l := library(t)
	e := newExecutor(t, containers.Options{Environments: l})
	image := configuredImage(t)
	name := "image-" + strings.TrimPrefix(image, "sha256:")[:12]
	kept := keep(t, l, name, 0, func(w io.Writer) (executor.Captured, error) {
		return e.CaptureImage(t.Context(), image, "", w, func(string) {})
	})
	if kept.GetImageId() != image || kept.GetKind() != v1.EnvironmentImage {
		t.Errorf("captured: %v", kept)
	}
	a, out, errs := enginetest.Attempt(t, "build", map[string]any{"environment": name, "image": "", "args": []any{"pwd"}})
	completes(t, e, a, errs)
	if out.String() != "/tmp\n" {
		t.Errorf("it prints %q", out)
	}
	_, err := e.CaptureImage(t.Context(), "127.0.0.1:1/none:1", "", io.Discard, func(string) {})
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:1/none:1") {
		t.Errorf("an image that there is not: %v", err)
	}
}
