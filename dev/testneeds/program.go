package testneeds

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// Program builds a program of this module and returns the path of its executable in Go's cache, where an unchanged
// program is found without being linked again. The source of the program becomes an input of the test, as for Sources.
func Program(name string) (path string, err error) {
	if err := Sources(name); err != nil {
		return "", err
	}
	for range 2 { // the run that links the program names a temporary file, and the next one the cached copy
		cmd := exec.Command("go", "run", "-exec", "echo", name)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return "", fmt.Errorf("build %s: %w", name, err)
		}
		path = strings.TrimSpace(string(out))
	}
	return path, nil
}
