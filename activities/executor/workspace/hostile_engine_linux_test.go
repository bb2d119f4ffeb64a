//go:build engines

package workspace

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

func TestDevicesAreNotRead(t *testing.T) {
	outputIsRefused(t, func(path string) error { return syscall.Mknod(path, syscall.S_IFCHR|0o600, 1<<8|5) })
}

// Root may remove anything, so the test drops that capability, for its own thread alone.
func TestCloseRemovesReadOnlyTreesOfAnotherUser(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer syscall.Setfsuid(0)
	closeRemovesReadOnlyTrees(t, func(workspace string) {
		const nobody = 65534
		deep := filepath.Join(workspace, "mod", "cache")
		for _, path := range []string{filepath.Dir(workspace), workspace, filepath.Dir(deep), deep, filepath.Join(deep, "file")} {
			if err := os.Lchown(path, nobody, -1); err != nil {
				t.Fatal(err)
			}
		}
		for dir := filepath.Dir(filepath.Dir(workspace)); strings.HasPrefix(dir, os.TempDir()+"/"); dir = filepath.Dir(dir) {
			if err := os.Chmod(dir, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := syscall.Setfsuid(nobody); err != nil {
			t.Fatal(err)
		}
		if os.RemoveAll(workspace) == nil {
			t.Fatal("the tree does not resist, the test is void")
		}
	})
}
