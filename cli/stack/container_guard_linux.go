package stack

import (
	"io"
	"os/exec"
	"path/filepath"
	"syscall"
)

// startGuard starts a guard process for the containers of a node. It ends once pipe is closed and nothing is left to do for it.
func startGuard(dir, node, fleet string) (pipe io.WriteCloser, guard *exec.Cmd, err error) {
	cmd := exec.Command("/proc/self/exe", dir, node, fleet)
	cmd.Args[0], cmd.Dir = guardName, filepath.Dir(dir)
	// Signals of the terminal must reach only the worker.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if pipe, err = cmd.StdinPipe(); err != nil {
		return nil, nil, err
	}
	return pipe, cmd, cmd.Start()
}
