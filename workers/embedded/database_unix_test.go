//go:build unix

package embedded

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestDatabaseIsNoPipe uses a pipe without a writer, whose opening would block.
func TestPipeIsRefusedAsDatabase(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := Start(t.Context(), Options{DBFile: path})
	if err == nil || !strings.Contains(err.Error(), path+" is not a regular file") {
		t.Errorf("got %v", err)
	}
}
