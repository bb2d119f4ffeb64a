//go:build unix && !linux

package processes

import (
	"os/exec"
	"syscall"
)

// startBound starts a command in its own process group. Its process may outlive this program if that is killed.
func startBound(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd.Start()
}
