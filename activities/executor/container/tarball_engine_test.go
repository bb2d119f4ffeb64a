//go:build engines

package container

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"switchyard/activities/executor/container/enginetest"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

// saved returns a docker save archive of a new image with some names, and the image's
// id. The machine's engine does not have the image.
func saved(t *testing.T, names ...string) (archive []byte, id string) {
	t.Helper()
	layer := randomTar(t)
	config := encode(t, map[string]any{
		"architecture": "amd64", "os": "linux", "config": map[string]any{}, "rootfs": map[string]any{"type": "layers", "diff_ids": []string{digestOf(layer)}},
	})
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, file := range []struct {
		name string
		data []byte
	}{
		{"config.json", config}, {"layer.tar", layer},
		{"manifest.json", encode(t, []any{map[string]any{"Config": "config.json", "RepoTags": names, "Layers": []string{"layer.tar"}}})},
	} {
		err := w.WriteHeader(&tar.Header{Name: file.name, Mode: 0o644, Size: int64(len(file.data))})
		if err == nil {
			_, err = w.Write(file.data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	loseImage(t, enginetest.Engine(t), digestOf(config))
	return b.Bytes(), digestOf(config)
}

func TestTarballIsLoadedWhereTheImageIsOlder(t *testing.T) {
	t.Parallel()
	e, name := newFor(t, Options{}), aName(t)
	path := filepath.Join(t.TempDir(), "image.tar")
	spec := &v1.ContainerSpec{Image: name, ImageTarball: path}
	loads := 0
	ensure := func(want string) {
		t.Helper()
		got, err := e.images.ensureImage(t.Context(), spec, func(line string) {
			if strings.HasPrefix(line, "loading image archive") {
				loads++
			}
		})
		if err != nil || got != want {
			t.Fatalf("%s, %v; want %s", got, err, want)
		}
	}
	write := func(archive []byte, changed time.Time) {
		t.Helper()
		if err := errors.Join(os.WriteFile(path, archive, 0o644), os.Chtimes(path, changed, changed)); err != nil {
			t.Fatal(err)
		}
	}
	first, firstID := saved(t, name)
	write(first, time.Now().Add(-time.Hour))
	ensure(firstID)
	ensure(firstID)
	if loads != 1 {
		t.Errorf("an archive that did not change was loaded %d times", loads)
	}
	second, secondID := saved(t, name)
	write(second, time.Now().Add(-time.Hour)) // older than the tag in the engine
	ensure(firstID)
	write(second, time.Now().Add(time.Hour))
	ensure(secondID)
	if loads != 2 {
		t.Errorf("a newer archive was loaded %d times", loads-1)
	}
}

func TestUnusableTarballsAreRefused(t *testing.T) {
	t.Parallel()
	e, dir, name := newFor(t, Options{}), t.TempDir(), aName(t)
	archive, _ := saved(t, name)
	write := func(file string, data []byte) string {
		path := filepath.Join(dir, file)
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "none"):      "no such file",
		dir:                             "it is not a regular file",
		pipe:                            "it is not a regular file",
		write("text", []byte("no tar")): "load image archive " + filepath.Join(dir, "text"),
		write("cut", archive[:700]):     "load image archive " + filepath.Join(dir, "cut"),
		write("other", archive):         "has no image switchyard-test/other:1: it has " + name,
		"s3://bucket/image.tar":         "loads archives only from files",
	} {
		_, err := e.images.ensureImage(t.Context(), &v1.ContainerSpec{Image: "switchyard-test/other:1", ImageTarball: path}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; it should say %q", path, err, want)
		}
	}
}

// TestTarballOfABucketIsLoadedOnce makes 10 attempts need the same archive at once.
func TestTarballOfABucketIsLoadedOnce(t *testing.T) {
	t.Parallel()
	name := aName(t)
	archive, id := saved(t, name)
	changed := time.Now().Add(-time.Hour)
	var read atomic.Int32
	hold := make(chan struct{})
	e := newFor(t, Options{OpenTarball: func(ctx context.Context, url string) (io.ReadCloser, time.Time, error) {
		if url != "s3://bucket/image.tar" {
			return nil, time.Time{}, fs.ErrNotExist
		}
		return io.NopCloser(&held{Reader: bytes.NewReader(archive), hold: hold, read: &read}), changed, nil
	}})
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			got, err := e.images.ensureImage(t.Context(), &v1.ContainerSpec{Image: name, ImageTarball: "s3://bucket/image.tar"}, nil)
			if err != nil || got != id {
				t.Errorf("%s, %v; want %s", got, err, id)
			}
		})
	}
	testneeds.Await(t, "it comes", func() bool { return e.images.loads.Waiting() == 10 })
	close(hold)
	all.Wait()
	if read.Load() != 1 {
		t.Errorf("it was read %d times", read.Load())
	}
	_, err := e.images.ensureImage(t.Context(), &v1.ContainerSpec{Image: name, ImageTarball: "s3://bucket/other.tar"}, nil)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// held is a reader that blocks until hold is closed, and counts its readers.
type held struct {
	io.Reader
	hold  chan struct{}
	read  *atomic.Int32
	began bool
}

func (h *held) Read(p []byte) (int, error) {
	if !h.began {
		h.began = true
		h.read.Add(1)
		<-h.hold
	}
	return h.Reader.Read(p)
}
