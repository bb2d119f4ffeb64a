package processes

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// starter returns the channel to a thread that starts every process. The kernel kills a process when the thread that
// started it ends, so this thread lasts as long as the program.
var starter = sync.OnceValue(func() chan<- func() {
	starts := make(chan func())
	go func() {
		runtime.LockOSThread()
		for start := range starts {
			start()
		}
	}()
	return starts
})

// startBound starts a command in its own process group. The kernel kills its process when this program ends.
func startBound(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	err := make(chan error)
	starter() <- func() { err <- cmd.Start() }
	return <-err
}
