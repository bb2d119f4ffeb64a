//go:build engines

package disk

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// qemuImg runs qemu-img in a folder, without the bounds of run.
func qemuImg(t testing.TB, folder string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Dir = folder
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return string(out)
}

// newImage creates a qcow2 image and returns its path.
func newImage(t testing.TB, folder, name, size string) string {
	t.Helper()
	qemuImg(t, folder, "create", "-q", "-f", "qcow2", name, size)
	return filepath.Join(folder, name)
}

// fill writes a byte to a range of a disk, as a machine does.
func fill(t testing.TB, path string, pattern byte, at, length int64) {
	t.Helper()
	command := fmt.Sprintf("write -q -P %d %d %d", pattern, at, length)
	if out, err := exec.CommandContext(t.Context(), "qemu-io", "-f", "qcow2", "-c", command, path).CombinedOutput(); err != nil {
		t.Fatalf("write to %s: %v\n%s", path, err, out)
	}
}

// hasPattern fails the test unless every byte of a range of a disk is pattern.
func hasPattern(t testing.TB, path string, pattern byte, at, length int64) {
	t.Helper()
	command := fmt.Sprintf("read -q -P %d %d %d", pattern, at, length)
	out, err := exec.CommandContext(t.Context(), "qemu-io", "-r", "-f", "qcow2", "-c", command, path).CombinedOutput()
	if err != nil || strings.Contains(string(out), "failed") {
		t.Errorf("%s has other bytes than %d at %d: %v\n%s", path, pattern, at, err, out)
	}
}
