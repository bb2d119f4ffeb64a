package workspace

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestOnlyPlainFilesAreRead(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("token=x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, plant := range map[string]func(path string) error{
		"link to a file":   func(path string) error { return os.Symlink(secret, path) },
		"link to nothing":  func(path string) error { return os.Symlink("/nowhere", path) },
		"link to a device": func(path string) error { return os.Symlink("/dev/zero", path) },
		"pipe":             func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"directory":        func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(name, func(t *testing.T) { outputIsRefused(t, plant) })
	}
}

// outputIsRefused checks that an output that plant creates is not read.
func outputIsRefused(t *testing.T, plant func(path string) error) {
	t.Helper()
	w := prepare(t, t.TempDir(), Request{Task: "t"})
	if err := plant(filepath.Join(w.Dir(), "output")); err != nil {
		t.Fatal(err)
	}
	s, err := w.Output(bytes.Clone)
	if content, ok := errors.AsType[*ContentError](err); !ok || !strings.Contains(content.Error(), "SWITCHYARD_OUTPUT: is not a regular file") {
		t.Errorf("%v, error %v, want it refused", s, err)
	}
}

func TestCloseRemovesReadOnlyTrees(t *testing.T) { closeRemovesReadOnlyTrees(t, func(string) {}) }

// closeRemovesReadOnlyTrees calls protect with the workspace before it is removed.
func closeRemovesReadOnlyTrees(t *testing.T, protect func(workspace string)) {
	w, err := NewRoot(t.TempDir(), "").Prepare(Request{Task: "t"})
	if err != nil {
		t.Fatal(err)
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Mkdir(outside, 0o500); err != nil {
		t.Fatal(err)
	}
	deep := filepath.Join(w.Dir(), "mod", "cache")
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(
		os.WriteFile(filepath.Join(deep, "file"), nil, 0o400),
		os.Symlink(outside, filepath.Join(deep, "link")),
		os.Chmod(deep, 0o500),
		os.Chmod(filepath.Dir(deep), 0),
	); err != nil {
		t.Fatal(err)
	}
	protect(w.Dir())
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(w.Dir()); err == nil {
		t.Error("the directory is still there")
	}
	if info, err := os.Stat(outside); err != nil || info.Mode().Perm() != 0o500 {
		t.Errorf("what a link points to has changed: %v, error %v", info, err)
	}
}
