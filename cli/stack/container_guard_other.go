//go:build !linux

package stack

import (
	"errors"
	"io"
	"os/exec"
)

// startGuard fails: only on Linux can a process reliably find its own program.
func startGuard(string, string, string) (io.WriteCloser, *exec.Cmd, error) {
	return nil, nil, errors.New("guards run on Linux only")
}
