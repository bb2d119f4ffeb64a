package workspace

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"switchyard/dev/testneeds"
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
		"device": func(path string) error {
			if os.Getuid() != 0 {
				return errors.ErrUnsupported
			}
			return syscall.Mknod(path, syscall.S_IFCHR|0o600, 1<<8|5)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := prepare(t, t.TempDir(), Request{Task: "t"})
			err := plant(filepath.Join(w.Dir(), "output"))
			if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.EPERM) {
				testneeds.Missing(t, "only root can make it")
			}
			if err != nil {
				t.Fatal(err)
			}
			s, err := w.Output(bytes.Clone)
			if content, ok := errors.AsType[*ContentError](err); !ok || !strings.Contains(content.Error(), "SWITCHYARD_OUTPUT: is not a regular file") {
				t.Errorf("%v, error %v, want it refused", s, err)
			}
		})
	}
}

// Root may remove anything, so the test drops that capability, for its own thread alone.
func TestCloseRemovesReadOnlyTrees(t *testing.T) {
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
	if os.Getuid() == 0 {
		const nobody = 65534
		for _, dir := range []string{filepath.Dir(w.Dir()), w.Dir(), filepath.Dir(deep)} {
			if err := os.Chown(dir, nobody, -1); err != nil {
				t.Fatal(err)
			}
		}
		for dir := filepath.Dir(filepath.Dir(w.Dir())); strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		for _, path := range []string{deep, filepath.Join(deep, "file")} {
			if err := os.Lchown(path, nobody, -1); err != nil {
				t.Fatal(err)
			}
		}
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := syscall.Setfsuid(nobody); err != nil {
			t.Fatal(err)
		}
		defer syscall.Setfsuid(0)
		if os.RemoveAll(w.Dir()) == nil {
			t.Fatal("the tree does not resist, the test is void")
		}
	}
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
