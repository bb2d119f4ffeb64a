//go:build unix && !linux

package shell

import "syscall"

// sessionAttr starts a program in a session, and so in a process group, of its own.
func sessionAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true}
}
