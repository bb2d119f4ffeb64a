//go:build unix && !linux

package shell

import "syscall"

// sessionAttr returns attributes that start a program in a session, and thus a
// process group, of its own.
func sessionAttr(bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true}
}
