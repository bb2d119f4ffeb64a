package shell

import "syscall"

// sessionAttr returns attributes that start a program in a session, and thus a
// process group, of its own. The program is killed when the thread that started
// it ends.
func sessionAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
