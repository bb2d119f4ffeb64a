//go:build unix

package gitclone

import (
	"os/exec"
	"syscall"
)

// ownGroup makes the end of a command that of the programs that it has started, too.
func ownGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
