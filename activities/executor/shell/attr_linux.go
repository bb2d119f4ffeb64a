package shell

import "syscall"

// sessionAttr returns attributes that start a program in a session, and thus a
// process group, of its own. Unless it may outlive this process, the program is
// killed when the thread that started it ends.
func sessionAttr(outlives bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true}
	if !outlives {
		a.Pdeathsig = syscall.SIGKILL
	}
	return a
}
