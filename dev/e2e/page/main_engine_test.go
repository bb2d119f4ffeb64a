//go:build engines

package page

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"switchyard/dev/browsertest"
	"switchyard/dev/testneeds"
)

// binary is the program under test, and repository the folder of its source.
var binary, repository string

func TestMain(m *testing.M) {
	// A stack and its page use about 500 MiB of processes.
	testneeds.Parallel(3)
	var err error
	if repository, err = filepath.Abs("../../.."); err == nil {
		binary, err = testneeds.Program("switchyard")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(browsertest.Run(m))
}
