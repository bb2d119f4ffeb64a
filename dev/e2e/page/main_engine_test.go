//go:build engines

package page

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"switchyard/dev/testneeds"
)

// binary is the program under test, and repository the folder of its source.
var binary, repository string

func TestMain(m *testing.M) {
	// A stack and its page use about 500 MiB of processes.
	testneeds.Parallel(2)
	os.Exit(build(m))
}

func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "switchyard-page-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "switchyard")
	if repository, err = filepath.Abs("../../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := testneeds.Sources("switchyard"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	cmd := exec.Command("go", "build", "-o", binary, ".")
	cmd.Dir, cmd.Stderr = repository, os.Stderr
	if err := cmd.Run(); err != nil {
		fmt.Fprintln(os.Stderr, "build:", err)
		return 1
	}
	return m.Run()
}
