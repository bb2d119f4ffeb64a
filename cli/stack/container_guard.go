package stack

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

	"switchyard/activities/executor/container"
	"switchyard/activities/taskrunner"
)

// guardName is argv[0] of the guard process, which ends the containers of a dead or stopped worker once their leases
// have expired. The process recognizes its job by this name.
const guardName = "switchyard-guard"

const (
	// guardStep is the interval between two checks.
	guardStep = 500 * time.Millisecond
	// guardCall bounds the engine calls of one check.
	guardCall = 30 * time.Second
	// guardAlone is how long a guard without a worker waits for containers that it must end.
	guardAlone = 65 * time.Minute
)

// ServeGuardIfAsked runs this process as a guard and does not return if it was started as one. Main calls it first.
//
// The arguments are the state folder and the name of the node. Standard input ends with the worker. After that, the
// guard runs only while there are containers to end.
func ServeGuardIfAsked() {
	if os.Args[0] != guardName || len(os.Args) != 3 {
		return
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	containers, err := container.New(container.Options{})
	if err != nil {
		os.Exit(1)
	}
	workerGone := make(chan struct{})
	go func() {
		defer close(workerGone)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}()
	guardContainers(context.Background(), containers, os.Args[1], os.Args[2], workerGone)
	os.Exit(0)
}

// guardContainers ends overdue containers of a node until the worker has ended and no container is left.
func guardContainers(ctx context.Context, containers *container.Executor, dir, node string, workerGone <-chan struct{}) {
	var until time.Time // deadline of a guard without a worker
	for {
		call, cancel := context.WithTimeout(ctx, guardCall)
		remaining, err := taskrunner.EndOverdue(call, dir, node, containers)
		cancel()
		select {
		case <-workerGone:
			if until.IsZero() {
				until = time.Now().Add(guardAlone)
			}
			if remaining == 0 && err == nil || time.Now().After(until) {
				return
			}
		default:
		}
		time.Sleep(guardStep)
	}
}

// containerGuards holds the guards of the nodes of this process.
type containerGuards struct {
	logger *slog.Logger

	mu    sync.Mutex
	pipes []io.Closer
	ends  []<-chan struct{}
}

// guardPatience is how long a guard may take to notice that it is not needed.
const guardPatience = 2 * time.Second

// close releases the guards. A guard with a container still to end continues to run.
func (g *containerGuards) close() error {
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
