//go:build unix

package terminal

import (
	"os"
	"os/signal"
	"syscall"
)

// onFatalSignal calls do before a signal that would end the process at once. The signal then has its usual effect.
// release stops this.
func onFatalSignal(do func()) (release func()) {
	caught, released, ended := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(caught, syscall.SIGQUIT, syscall.SIGABRT, syscall.SIGPIPE)
	go func() {
		defer close(ended)
		select {
		case sig := <-caught:
			do()
			number, _ := sig.(syscall.Signal)
			signal.Reset(number)
			if number == syscall.SIGPIPE {
				number = syscall.SIGTERM // a write has already failed and would not fail a second time
			}
			_ = syscall.Kill(os.Getpid(), number)
		case <-released:
		}
	}()
	return func() {
		signal.Stop(caught)
		close(released)
		<-ended
	}
}

// onResize sends to changed when the window of a terminal changes its size. release stops this.
func onResize(changed chan<- os.Signal) (release func()) {
	signal.Notify(changed, syscall.SIGWINCH)
	return func() { signal.Stop(changed) }
}
