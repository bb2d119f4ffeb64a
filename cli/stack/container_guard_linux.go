package stack

import (
	"os/exec"
	"path/filepath"
	"syscall"
)

// start starts a guard process for the containers of a node. A failure is only logged.
func (g *containerGuards) start(dir, node string) {
	cmd := exec.Command("/proc/self/exe", dir, node)
	cmd.Args[0], cmd.Dir = guardName, filepath.Dir(dir)
	// Signals of the terminal must reach only the worker.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		g.logger.Warn("containers may outlive their leases if this worker crashes", "error", err)
		return
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // its exit status does not matter
	}()
	g.mu.Lock()
	defer g.mu.Unlock()
	g.pipes, g.ends = append(g.pipes, pipe), append(g.ends, ended)
}
