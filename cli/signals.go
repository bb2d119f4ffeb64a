package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"switchyard/cli/exit"
)

// catchSignals returns a context that is done, because of errInterrupted, at the
// first SIGINT or SIGTERM, and because of errHungUp at a SIGHUP. At each one after
// that quit is called. release ends this.
func catchSignals(parent context.Context, quit func()) (ctx context.Context, release func()) {
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
