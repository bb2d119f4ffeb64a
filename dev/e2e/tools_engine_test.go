//go:build engines

package e2e

import (
	"os/exec"
	"path/filepath"
	"testing"

	"switchyard/dev/testneeds"
)

// tool returns the path of a third-party program.
func tool(t *testing.T, name string) string {
	t.Helper()
	for _, path := range []string{filepath.Join(repository, ".bin", name), name} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	testneeds.Missing(t, "%s is not installed", name)
	return ""
}
