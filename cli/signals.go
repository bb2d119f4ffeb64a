package cli

import (
	"context"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"

	"switchyard/cli/exit"
)

// catchSignals returns a context that ends with errInterrupted at the first SIGINT or SIGTERM, and with errHungUp at a
// SIGHUP. Each later signal calls quit. A signal that divert takes does not count. release stops the handling of
// signals.
func catchSignals(parent context.Context, divert func(os.Signal) bool, quit func()) (ctx context.Context, release func()) {
	caught := make(chan os.Signal, 2)
	signal.Notify(caught, os.Interrupt, syscall.SIGTERM)
	// Under nohup, SIGHUP stays ignored.
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

// signalDiversion holds the function that takes signals in place of the command, such as that of a program in a task.
// The zero value takes none.
type signalDiversion struct {
	take atomic.Pointer[func(os.Signal) bool]
}

// set makes each signal call take, which reports whether it took the signal. nil ends the diversion.
func (d *signalDiversion) set(take func(os.Signal) bool) {
	if take == nil {
		d.take.Store(nil)
		return
	}
	d.take.Store(&take)
}

// offer offers a signal to the diversion and reports whether that took it.
func (d *signalDiversion) offer(sig os.Signal) bool {
	take := d.take.Load()
	return take != nil && (*take)(sig)
}
