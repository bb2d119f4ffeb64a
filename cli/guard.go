package cli

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"switchyard/activities"
	"switchyard/activities/executor/container"
)

// guardName is argv[0] of the process that ends the containers of a worker which is dead
// or held up when their leases are over; it is how the process knows that it is one.
const guardName = "switchyard-guard"

const (
	// guardStep is the time between two looks.
	guardStep = 500 * time.Millisecond
	// guardCall bounds what one look does with the engine.
	guardCall = 30 * time.Second
	// guardAlone is how long a guard without a worker stays for what it has to end.
	guardAlone = 65 * time.Minute
)

// GuardIfAsked turns this process into a guard, and does not return, if it was started
// for that: it is called by main.
//
// Its arguments are the state of the node and the node's name. Its standard input ends
// with the worker. From then on it stays only while there is something to end.
func GuardIfAsked() {
	if os.Args[0] != guardName || len(os.Args) != 3 {
		return
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	containers, err := container.New(container.Options{})
	if err != nil {
		os.Exit(1)
	}
	alone := make(chan struct{})
	go func() {
		defer close(alone)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	guard(context.Background(), containers, os.Args[1], os.Args[2], alone)
	os.Exit(0)
}

// guard looks after the state of a node until its worker has gone and nothing is left to end.
func guard(ctx context.Context, containers *container.Executor, dir, node string, alone <-chan struct{}) {
	var until time.Time // when a guard without a worker gives up
	for {
		call, cancel := context.WithTimeout(ctx, guardCall)
		left, err := activities.EndOverdue(call, dir, node, containers)
		cancel()
		select {
		case <-alone:
			if until.IsZero() {
				until = time.Now().Add(guardAlone)
			}
			if left == 0 && err == nil || time.Now().After(until) {
				return
			}
		default:
		}
		time.Sleep(guardStep)
	}
}

// guards are those of the nodes of this process.
type guards struct {
	logger *slog.Logger

	mu    sync.Mutex
	pipes []io.Closer
	ends  []<-chan struct{}
}

// guardPatience is how long a guard may take to see that it is not needed any more.
const guardPatience = 2 * time.Second

// close lets the guards go. One that still has something to do stays.
func (g *guards) close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var errs []error
	for _, pipe := range g.pipes {
		errs = append(errs, pipe.Close())
	}
	patience := time.After(guardPatience)
	for _, ended := range g.ends {
		select {
		case <-ended:
		case <-patience:
			return errors.Join(errs...)
		}
	}
	return errors.Join(errs...)
}
