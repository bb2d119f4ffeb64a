//go:build engines

package container

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/docker/docker/api/types/filters"
	"github.com/docker/docker/api/types/image"

	"switchyard/activities/executor"
	"switchyard/activities/executor/container/enginetest"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

// shelf is a fake of executor.Environments that holds versions by environment name.
type shelf struct {
	mu       sync.Mutex
	newest   map[string]*v1.Environment
	archives map[string][]byte // by name of the archive in v1.Environment
	opened   atomic.Int32
	// reads is called before the archive of a version is read, unless it is nil.
	reads func(*v1.Environment) error
}

func newShelf() *shelf {
	return &shelf{newest: map[string]*v1.Environment{}, archives: map[string][]byte{}}
}

// put makes an archive the newest version of an environment.
func (s *shelf) put(name string, archive []byte, imageID string) *v1.Environment {
	s.mu.Lock()
	defer s.mu.Unlock()
	older := s.newest[name]
	delete(s.archives, older.GetArchive())
	e := &v1.Environment{
		Name: name, Kind: v1.EnvironmentImage, Version: older.GetVersion() + 1, Size: int64(len(archive)), ImageId: imageID,
		Digest: fmt.Sprintf("%x", sha256.Sum256(archive)),
	}
	e.Archive = e.GetDigest() + name
	s.newest[name], s.archives[e.GetArchive()] = e, archive
	return e
}

func (s *shelf) Find(_ context.Context, name string) (*v1.Environment, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.newest[name]; e != nil {
		return e, nil
	}
	return nil, executor.ErrNoEnvironment
}

func (s *shelf) Open(_ context.Context, e *v1.Environment) (io.ReadCloser, error) {
	s.opened.Add(1)
	if s.reads != nil {
		if err := s.reads(e); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	archive, ok := s.archives[e.GetArchive()]
	if !ok {
		return nil, executor.ErrNoEnvironment
	}
	return io.NopCloser(bytes.NewReader(archive)), nil
}

// environmentName returns a unique environment name. It removes the environment's images from the machine's engine at the
// end of the test.
func environmentName(t *testing.T) string {
	t.Helper()
	name := "test-" + strings.TrimPrefix(digestOf(randomTar(t)), "sha256:")[:12]
	docker := enginetest.Engine(t)
	t.Cleanup(func() {
		for _, tag := range tagsOf(t, name) {
			_, _ = docker.ImageRemove(context.Background(), tag, image.RemoveOptions{Force: true})
		}
	})
	return name
}

// tagsOf returns the tags of an environment's images in the machine's engine.
func tagsOf(t *testing.T, name string) (tags []string) {
	t.Helper()
	found, err := enginetest.Engine(t).ImageList(context.Background(), image.ListOptions{Filters: filters.NewArgs(filters.Arg("reference", environmentRepositoryOf(name)))})
	if err != nil {
		t.Error(err)
	}
	for _, one := range found {
		tags = append(tags, one.RepoTags...)
	}
	return tags
}

// ensure returns the image id of the newest version, and the progress lines, as an attempt gets them.
func (e *Executor) ensure(t *testing.T, name string) (id string, lines []string) {
	t.Helper()
	spec := &v1.ContainerSpec{Environment: name}
	id, release, err := e.images.ensureEnvironment(t.Context(), spec, func(line string) { lines = append(lines, line) })
	if err != nil {
		t.Fatal(err)
	}
	release()
	if spec.GetImage() != id {
		t.Errorf("the container is made of %s", spec.GetImage())
	}
	return id, lines
}

func TestEnvironmentIsLoadedOnceAndNewerVersionsReplaceIt(t *testing.T) {
	t.Parallel()
	s, name := newShelf(), environmentName(t)
	e := newFor(t, Options{Environments: s})
	archive, first := saved(t)
	s.put(name, archive, first)
	id, lines := e.ensure(t, name)
	if id != first || len(lines) < 2 || lines[0] != fmt.Sprintf("loading environment %s, version 1 (%s)", name, megabytes(int64(len(archive)))) {
		t.Errorf("image %s, said %q", id, lines)
	}
	if id, lines := e.ensure(t, name); id != first || len(lines) != 0 || s.opened.Load() != 1 {
		t.Errorf("the second time: image %s, said %q, %d loads", id, lines, s.opened.Load())
	}
	archive, second := saved(t)
	newer := s.put(name, archive, second)
	if id, _ := e.ensure(t, name); id != second {
		t.Errorf("image %s of version 2", id)
	}
	if tags := tagsOf(t, name); len(tags) != 1 || tags[0] != environmentTag(newer) {
		t.Errorf("the engine has %v", tags)
	}
	if _, err := e.images.inspectImage(t.Context(), first); err == nil {
		t.Error("the engine has the image of version 1")
	}
	// The image of a deleted environment is removed, too.
	delete(s.newest, name)
	_, _, err := e.images.ensureEnvironment(t.Context(), &v1.ContainerSpec{Environment: name}, nil)
	if executor.AsStartError(err) == nil || !strings.Contains(err.Error(), "switchyard env list") {
		t.Errorf("without it: %v", err)
	}
	if tags := tagsOf(t, name); len(tags) != 0 {
		t.Errorf("the engine has %v", tags)
	}
}

func TestEnvironmentWithALocalImageIsNotLoaded(t *testing.T) {
	t.Parallel()
	s, name := newShelf(), environmentName(t)
	e := newFor(t, Options{Environments: s})
	own, err := e.images.inspectImage(t.Context(), ownImage(t))
	if err != nil {
		t.Fatal(err)
	}
	s.put(name, []byte("no archive"), own.ID)
	if id, _ := e.ensure(t, name); id != own.ID || s.opened.Load() != 0 {
		t.Errorf("image %s after %d loads", id, s.opened.Load())
	}
}

func TestConcurrentAttemptsShareOneLoad(t *testing.T) {
	t.Parallel()
	s, name := newShelf(), environmentName(t)
	e := newFor(t, Options{Environments: s})
	archive, want := saved(t)
	s.put(name, archive, want)
	release := make(chan struct{})
	s.reads = func(*v1.Environment) error { <-release; return nil }
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			spec := &v1.ContainerSpec{Environment: name}
			id, unhold, err := e.images.ensureEnvironment(t.Context(), spec, nil)
			if err != nil || id != want {
				t.Errorf("%s, %v", id, err)
				return
			}
			unhold()
		})
	}
	testneeds.Await(t, "it comes", func() bool { return e.images.versions.Waiting() == 20 })
	close(release)
	all.Wait()
	if n := s.opened.Load(); n != 1 {
		t.Errorf("it was loaded %d times", n)
	}
}

func TestReplacedVersionIsLoadedAgain(t *testing.T) {
	t.Parallel()
	s, name := newShelf(), environmentName(t)
	e := newFor(t, Options{Environments: s})
	archive, first := saved(t)
	newer, second := saved(t)
	s.put(name, archive, first)
	s.reads = func(e *v1.Environment) error {
		if e.GetVersion() == 1 {
			s.put(name, newer, second)
		}
		return nil
	}
	if id, lines := e.ensure(t, name); id != second || !strings.Contains(strings.Join(lines, "\n"), "version 2") {
		t.Errorf("image %s, said %q", id, lines)
	}
}

func TestImageThatAnAttemptIsAboutToUseIsNotDropped(t *testing.T) {
	t.Parallel()
	s, name := newShelf(), environmentName(t)
	e := newFor(t, Options{Environments: s})
	archive, first := saved(t)
	s.put(name, archive, first)
	id, release, err := e.images.ensureEnvironment(t.Context(), &v1.ContainerSpec{Environment: name}, nil)
	if err != nil {
		t.Fatal(err)
	}
	archive, second := saved(t)
	s.put(name, archive, second)
	e.ensure(t, name)
	if _, err := e.images.inspectImage(t.Context(), id); err != nil {
		t.Errorf("the image in use: %v", err)
	}
	release()
	e.ensure(t, name)
	if _, err := e.images.inspectImage(t.Context(), id); err == nil {
		t.Error("the image is still there")
	}
}

func TestUnusableEnvironmentsAreRefused(t *testing.T) {
	t.Parallel()
	s, name := newShelf(), environmentName(t)
	archive, id := saved(t)
	s.put(name+"-disk", nil, "").Kind = v1.EnvironmentDisk
	s.put(name+"-cut", archive[:700], id)
	s.put(name+"-away", archive, id)
	s.reads = func(e *v1.Environment) error {
		if e.GetName() == name+"-away" {
			return errors.New("the gateway is away")
		}
		return nil
	}
	with := newFor(t, Options{Environments: s})
	for environment, test := range map[string]struct {
		e      *Executor
		says   string
		ofTask bool
	}{
		"none":            {with, "no environment named none is ready; list environments with `switchyard env list`", true},
		name + "-disk":    {with, "`backend: qemu`", true},
		name + "-cut":     {with, "load environment " + name + "-cut, version 1: ", false},
		name + "-away":    {with, "the gateway is away", false},
		name + "-unknown": {newFor(t, Options{}), "this node does not support environments", true},
	} {
		_, _, err := test.e.images.ensureEnvironment(t.Context(), &v1.ContainerSpec{Environment: environment}, nil)
		if err == nil || !strings.Contains(err.Error(), test.says) || (executor.AsStartError(err) != nil) != test.ofTask {
			t.Errorf("%s: %v", environment, err)
		}
		if tags := tagsOf(t, environment); len(tags) != 0 {
			t.Errorf("%s: the engine has %v", environment, tags)
		}
	}
}

func TestEnvironmentNamesYieldValidRepositories(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"desk", "a.b-c_d", "a..b", "a___b", "a.-b", "0"} {
		tag := environmentTag(&v1.Environment{Name: name, Version: 3, Digest: strings.Repeat("0a", 32)})
		docker := enginetest.Engine(t)
		if err := docker.ImageTag(t.Context(), enginetest.Image(t), tag); err != nil {
			t.Errorf("%s: %v", tag, err)
		}
		loseImage(t, docker, tag)
	}
}
