//go:build engines

package disk

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchyard/activities/executor"
	v1 "switchyard/proto/switchyard/v1"
)

// bucket has one object with replaceable content.
type bucket struct {
	mu      sync.Mutex
	content []byte
	changed time.Time
	opened  atomic.Int32
	read    atomic.Int64
	// release blocks reads until it is closed. nil does not block.
	release chan struct{}
	// err ends each read after the content, instead of io.EOF.
	err error
}

func (b *bucket) put(content []byte, changed time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.content, b.changed = content, changed
}

func (b *bucket) open(context.Context, string) (io.ReadCloser, time.Time, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.opened.Add(1)
	return &objectReader{b, bytes.NewReader(b.content), make(chan struct{}), sync.Once{}}, b.changed, nil
}

type objectReader struct {
	bucket *bucket
	*bytes.Reader
	closed chan struct{}
	once   sync.Once
}

func (r *objectReader) Read(p []byte) (int, error) {
	if r.bucket.release != nil {
		select {
		case <-r.bucket.release:
		case <-r.closed:
			return 0, os.ErrClosed
		}
	}
	n, err := r.Reader.Read(p)
	r.bucket.read.Add(int64(n))
	if errors.Is(err, io.EOF) && r.bucket.err != nil {
		err = r.bucket.err
	}
	return n, err
}

func (r *objectReader) Close() error {
	r.once.Do(func() { close(r.closed) })
	return nil
}

// imageOf returns a qcow2 image whose first bytes are pattern.
func imageOf(t testing.TB, pattern byte) []byte {
	t.Helper()
	path := newImage(t, t.TempDir(), "image", "64M")
	fill(t, path, pattern, 0, 4096)
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func TestPathsOfImagesAreBelowAllowedDirectories(t *testing.T) {
	root := t.TempDir()
	allowed, secret := filepath.Join(root, "allowed"), filepath.Join(root, "secret")
	for _, dir := range []string{allowed, secret, allowed + "2", filepath.Join(allowed, "below")} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	newImage(t, secret, "image.qcow2", "1M")
	newImage(t, allowed+"2", "image.qcow2", "1M")
	newImage(t, filepath.Join(allowed, "below"), "image.qcow2", "1M")
	for from, to := range map[string]string{
		filepath.Join(allowed, "out"): filepath.Join(secret, "image.qcow2"), filepath.Join(allowed, "dir"): secret,
		filepath.Join(root, "link"): allowed,
	} {
		if err := os.Symlink(to, from); err != nil {
			t.Fatal(err)
		}
	}
	m := newImages(t, Options{Directories: []string{filepath.Join(root, "link"), filepath.Join(root, "unmounted")}})
	base, err := m.Ensure(t.Context(), filepath.Join(allowed, "below", "image.qcow2"), quiet)
	if err != nil || base != (Base{Path: filepath.Join(allowed, "below", "image.qcow2"), Format: FormatQcow2, VirtualSize: 1 << 20}) {
		t.Errorf("%+v, %v", base, err)
	}
	for _, path := range []string{
		filepath.Join(secret, "image.qcow2"), filepath.Join(secret, "missing"), filepath.Join(allowed, "out"), filepath.Join(allowed, "dir/image.qcow2"),
		allowed + "2/image.qcow2", allowed + "/below/../../secret/image.qcow2", allowed, "/etc/passwd",
	} {
		_, err := m.Ensure(t.Context(), path, quiet)
		if wantError(t, err, "--vm-images DIR") {
			t.Errorf("%v: another node may allow the path", err)
		}
		wantError(t, err, path)
	}
	_, err = m.Ensure(t.Context(), filepath.Join(root, "link", "missing"), quiet)
	wantError(t, err, "no such file")
	_, err = newImages(t, Options{}).Ensure(t.Context(), filepath.Join(secret, "image.qcow2"), quiet)
	wantError(t, err, "this node does not allow image paths")
}

func TestImageOfABucketIsDownloadedOnce(t *testing.T) {
	b := &bucket{content: imageOf(t, 1), changed: time.Unix(1, 0), release: make(chan struct{})}
	m := newImages(t, Options{OpenObject: b.open})
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			base, err := m.Ensure(t.Context(), "s3://bucket/image.qcow2", quiet)
			if err != nil || base.VirtualSize != 64<<20 {
				t.Errorf("%+v, %v", base, err)
			}
		})
	}
	for m.downloads.Waiting() < 8 {
		time.Sleep(time.Millisecond)
	}
	close(b.release)
	all.Wait()
	if b.opened.Load() != 1 {
		t.Errorf("the object was opened %d times", b.opened.Load())
	}
	var said []string
	read := b.read.Load()
	if _, err := m.Ensure(t.Context(), "s3://bucket/image.qcow2", func(line string) { said = append(said, line) }); err != nil {
		t.Fatal(err)
	}
	if b.read.Load() != read || len(said) > 0 {
		t.Errorf("an image of the cache is downloaded again: %q", said)
	}
	if got := files(t, m.opts.CacheDir); len(got) != 1 {
		t.Errorf("the cache has %q", got)
	}
}

func TestMachineKeepsTheVersionOfItsImage(t *testing.T) {
	root := t.TempDir()
	machine := filepath.Join(root, "machine")
	if err := os.Mkdir(machine, 0o700); err != nil {
		t.Fatal(err)
	}
	b := &bucket{content: imageOf(t, 1), changed: time.Unix(1, 0)}
	m := newImages(t, Options{CacheDir: filepath.Join(root, "cache"), OpenObject: b.open})
	old, err := m.Ensure(t.Context(), "gs://bucket/image", quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := CreateOverlay(t.Context(), filepath.Join(machine, "disk"), old, 0); err != nil {
		t.Fatal(err)
	}
	b.put(imageOf(t, 2), time.Unix(2, 0))
	m.now = func() time.Time { return time.Now().Add(2 * keepReplaced) }
	current, err := m.Ensure(t.Context(), "gs://bucket/image", quiet)
	if err != nil {
		t.Fatal(err)
	}
	// The image is found by its last use, which the next Ensure records.
	if _, err := m.Ensure(t.Context(), "gs://bucket/image", quiet); err != nil {
		t.Fatal(err)
	}
	m.sweep()
	if got := files(t, m.opts.CacheDir); len(got) != 1 || got[0] != filepath.Base(current.Path) {
		t.Errorf("the cache has %q, want only %s", got, current.Path)
	}
	hasPattern(t, filepath.Join(machine, "disk"), 1, 0, 4096)
	hasPattern(t, current.Path, 2, 0, 4096)
	m.now = func() time.Time { return time.Now().Add(2 * keepUnused) }
	m.sweep()
	if got := files(t, m.opts.CacheDir); len(got) != 0 {
		t.Errorf("the cache keeps unused images: %q", got)
	}
}

func TestDownloadThatFailsLeavesNothing(t *testing.T) {
	torn := errors.New("connection torn")
	image := imageOf(t, 1)
	for name, test := range map[string]struct {
		bucket    *bucket
		want      string
		isBadSpec bool
	}{
		"torn":     {&bucket{content: image, err: torn}, "connection torn", false},
		"text":     {&bucket{content: []byte("<Error>AccessDenied</Error>")}, "not a disk image: the file contains text", true},
		"cut":      {&bucket{content: image[:300]}, "cut short", true},
		"data cut": {&bucket{content: image[:len(image)-(64<<10)]}, "qemu-img check", true},
		"canceled": {&bucket{content: image, release: make(chan struct{})}, "context canceled", false},
	} {
		m := newImages(t, Options{OpenObject: test.bucket.open})
		ctx, cancel := context.WithCancel(t.Context())
		if name == "canceled" {
			go func() {
				for test.bucket.opened.Load() == 0 {
					time.Sleep(time.Millisecond)
				}
				cancel()
			}()
		}
		_, err := m.Ensure(ctx, "s3://bucket/image", quiet)
		cancel()
		if wantError(t, err, test.want) != test.isBadSpec {
			t.Errorf("%v: the spec is at fault: want %v", err, test.isBadSpec)
		}
		if got := files(t, m.opts.CacheDir); len(got) > 0 {
			t.Errorf("%s leaves %q", name, got)
		}
	}
}

func TestBrokenImageOfTheCacheIsDownloadedAgain(t *testing.T) {
	b := &bucket{content: imageOf(t, 1), changed: time.Unix(1, 0)}
	m := newImages(t, Options{OpenObject: b.open, Logger: slog.New(slog.DiscardHandler)})
	base, err := m.Ensure(t.Context(), "s3://bucket/image", quiet)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Chmod(base.Path, 0o600), os.Truncate(base.Path, 100)); err != nil {
		t.Fatal(err)
	}
	if again, err := m.Ensure(t.Context(), "s3://bucket/image", quiet); err != nil || again != base {
		t.Errorf("%+v, %v", again, err)
	}
	hasPattern(t, base.Path, 1, 0, 4096)
}

// shelf has one environment.
type shelf struct {
	environment *v1.Environment
	content     []byte
	opened      int
}

func (s *shelf) Find(_ context.Context, name string) (*v1.Environment, error) {
	if name != s.environment.Name {
		return nil, executor.ErrNoEnvironment
	}
	return s.environment, nil
}

func (s *shelf) Open(context.Context, *v1.Environment) (io.ReadCloser, error) {
	s.opened++
	return io.NopCloser(bytes.NewReader(s.content)), nil
}

func TestImageOfAnEnvironmentFollowsItsVersion(t *testing.T) {
	s := &shelf{environment: &v1.Environment{Name: "desk", Digest: "1", Kind: v1.EnvironmentDisk}, content: imageOf(t, 1)}
	m := newImages(t, Options{Environments: s})
	for i, version := range []string{"1", "1", "2"} {
		s.environment.Digest = version
		s.environment.Size = int64(len(s.content))
		if _, err := m.Ensure(t.Context(), "desk", quiet); err != nil {
			t.Fatal(err)
		}
		if want := []int{1, 1, 2}[i]; s.opened != want {
			t.Errorf("version %s: the environment was opened %d times, want %d", version, s.opened, want)
		}
	}
	_, err := m.Ensure(t.Context(), "dusk", quiet)
	wantError(t, err, "image dusk: environment not found; list those that are ready with `switchyard env list`")
	s.environment.Kind = v1.EnvironmentImage
	_, err = m.Ensure(t.Context(), "desk", quiet)
	if !wantError(t, err, "a container image, which a virtual machine cannot boot") {
		t.Errorf("%v: the spec is at fault", err)
	}
	s.environment = &v1.Environment{Name: "desk", Digest: "3", Kind: v1.EnvironmentDisk, Size: 1 << 49}
	if _, err = m.Ensure(t.Context(), "desk", quiet); wantError(t, err, "free; an image of 512 TiB") {
		t.Errorf("%v: the node is at fault", err)
	}
	if !strings.Contains(err.Error(), m.opts.CacheDir) {
		t.Errorf("%v: it does not name the folder", err)
	}
}
