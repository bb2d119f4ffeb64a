package cli

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"switchyard/cli/exit"
)

// catchSignals returns a context that is done, because of errInterrupted, at the
// first SIGINT or SIGTERM, and because of errHungUp at a SIGHUP. At each one after
// that quit is called. A signal that divert takes counts as none. release ends this.
func catchSignals(parent context.Context, divert func(os.Signal) bool, quit func()) (ctx context.Context, release func()) {
	caught := make(chan os.Signal, 2)
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM)
	// nohup asks for this one to be ignored.
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(caught, syscall.SIGHUP)
	}
	ctx, interrupt := context.WithCancelCause(parent)
	released, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		first := true
		for {
			select {
			case sig := <-caught:
				if divert(sig) {
					continue
				}
				switch {
				case !first:
					quit()
				case sig == syscall.SIGHUP:
					interrupt(exit.ErrHungUp)
				default:
					interrupt(exit.ErrInterrupted)
				}
				first = false
			case <-released:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(caught)
		close(released)
		<-ended
		interrupt(nil)
	}
}

// signalDiversion holds what takes signals in place of the command, such as a program in a task. The zero value takes none.
type signalDiversion struct {
	take atomic.Pointer[func(os.Signal) bool]
}

// set has take called with each signal; it reports whether it has taken one. nil ends this.
func (d *signalDiversion) set(take func(os.Signal) bool) {
	if take == nil {
		d.take.Store(nil)
		return
	}
	d.take.Store(&take)
}

// offer reports whether a signal was taken.
func (d *signalDiversion) offer(sig os.Signal) bool {
	take := d.take.Load()
	return take != nil && (*take)(sig)
}
