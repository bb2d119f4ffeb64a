package cli

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"switchyard/cli/exit"
	"switchyard/cli/stack"
)

func TestFirstSignalInterruptsSecondQuits(t *testing.T) {
	for _, number := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(number) {
			continue // the tests run under nohup
		}
		quit := make(chan struct{}, 1)
		ctx, release := catchSignals(t.Context(), new(signalDiversion).offer, func() { quit <- struct{}{} })
		must(t, syscall.Kill(os.Getpid(), number))
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Minute):
			t.Fatalf("%v does not interrupt", number)
		}
		if !errors.Is(context.Cause(ctx), exit.ErrInterrupted) || errors.Is(context.Cause(ctx), exit.ErrHungUp) != (number == syscall.SIGHUP) {
			t.Errorf("after %v the cause is %v", number, context.Cause(ctx))
		}
		select {
		case <-quit:
			t.Errorf("one %v quits", number)
		default:
		}
		must(t, syscall.Kill(os.Getpid(), number))
		select {
		case <-quit:
		case <-time.After(2 * time.Minute):
			t.Fatalf("a second %v does not quit", number)
		}
		release()
	}
}

func TestLeftoversAreRemoved(t *testing.T) {
	dir := t.TempDir() + "/private"
	must(t, os.MkdirAll(dir+"/store/logs", 0o700))
	var l stack.ExitFolders
	l.Add(dir)
	l.Remove()
	// Remove does not wait long for a busy machine.
	for late := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Millisecond) {
		_, err := os.Stat(dir)
		if errors.Is(err, os.ErrNotExist) {
			return
		}
		if time.Now().After(late) {
			t.Fatalf("the folder is still there: %v", err)
		}
	}
}
