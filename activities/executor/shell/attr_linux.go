package shell

import "syscall"

// sessionAttr starts a program in a session of its own, and so in a process
// group of its own, and ends it with the thread that started it.
func sessionAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
