package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// newImages returns images with a temporary cache unless o names one.
func newImages(t testing.TB, o Options) *Images {
	t.Helper()
	if o.CacheDir == "" {
		o.CacheDir = filepath.Join(t.TempDir(), "cache")
	}
	m, err := NewImages(o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// files returns the names of the files in a folder, which may be missing.
func files(t testing.TB, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func quiet(string) {}

func TestReferencesOfOtherKindsAreRefused(t *testing.T) {
	m := newImages(t, Options{})
	for ref, want := range map[string]string{
		"":                      "the machine has no image",
		"https://example.com/x": "images come from s3:// and gs://",
		"file:///etc/shadow":    "images come from s3:// and gs://",
		"s3://bucket/x":         "this node has no access to buckets",
		"desk":                  "this node has no access to environments",
		"../x":                  "this node has no access to environments",
	} {
		_, err := m.Ensure(t.Context(), ref, quiet)
		wantError(t, err, want)
		wantError(t, err, ref)
	}
	if _, err := os.Stat(m.opts.CacheDir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the cache exists without a download: %v", err)
	}
}

func TestPartialDownloadsAreRemovedAtTheStart(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "123"+partialSuffix), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	newImages(t, Options{CacheDir: dir})
	if got := files(t, dir); len(got) > 0 {
		t.Errorf("the cache has %q", got)
	}
}
