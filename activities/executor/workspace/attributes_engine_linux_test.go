//go:build engines

package workspace

import (
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"switchyard/dev/testneeds"
)

// protect sets attributes as chattr +i or +a does.
func protect(t *testing.T, path string, flags int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, flags); err != nil {
		testneeds.Missing(t, "files cannot be made immutable here: %v", err)
	}
	t.Cleanup(func() {
		if f, err := os.Open(path); err == nil {
			_ = unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, 0)
			_ = f.Close()
		}
	})
}

func TestCloseRemovesWhatIsImmutable(t *testing.T) {
	w, err := NewRoot(t.TempDir(), "").Prepare(Request{Task: "t"})
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(w.Dir(), "tmp", "deep")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, flags := range map[string]int{"file": 0x10, "log": 0x20} {
		path = filepath.Join(dir, path)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		protect(t, path, flags)
	}
	protect(t, dir, 0x10)
	protect(t, w.Dir(), 0x10)
	if os.RemoveAll(w.Dir()) == nil {
		t.Fatal("the tree does not resist, the test is void")
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Lstat(w.Dir()); err == nil {
		t.Error("the directory is still there")
	}
}
