//go:build unix

package tool

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Pipes, sockets and devices are refused at once and never opened.
func TestSpecialFilesAreRefused(t *testing.T) {
	tree := newTree(t)
	at := func(name string) string { return filepath.Join(tree.Path(), name) }
	if err := syscall.Mkfifo(at("pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Chdir(tree.Path()) // the address of a socket must be short
	socket, err := net.Listen("unix", "socket")
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	names := []string{"pipe", "socket", "link"}
	if err := os.Symlink("pipe", at("link")); err != nil {
		t.Fatal(err)
	}
	if syscall.Mknod(at("null"), syscall.S_IFCHR|0o666, 1<<8|3) == nil { // only root may do that
		names = append(names, "null")
	}
	for _, name := range names {
		for _, tool := range Files(tree)[:3] {
			out := call(t, tool, map[string]any{"path": name, "content": "x", "old": "a", "new": "b"})
			if !out.IsError || !strings.Contains(out.Text, "not a regular file") {
				t.Errorf("%s of %s: %q", tool.Definition().Name, name, out.Text)
			}
		}
	}
	if _, err := Pack(tree.Path(), 1<<20); err != nil {
		t.Error(err)
	}
}
