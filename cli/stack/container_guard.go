package stack

import (
	"context"
	"io"
	"log/slog"
	"os"
	"os/exec"
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
	guardContainers(context.Background(), &taskrunner.Keeper{Dir: os.Args[1], Node: os.Args[2], Executor: containers}, workerGone)
	os.Exit(0)
}

// guardContainers ends overdue containers of a node until the worker has ended and no container is left.
func guardContainers(ctx context.Context, keeper *taskrunner.Keeper, workerGone <-chan struct{}) {
	var until time.Time // deadline of a guard without a worker
	for {
		call, cancel := context.WithTimeout(ctx, guardCall)
		remaining, err := keeper.EndOverdue(call)
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

const (
	// guardPatience is how long a guard may take to notice that it is not needed.
	guardPatience = 2 * time.Second
	// guardPause is the time before a guard that was killed is replaced.
	guardPause = time.Second
)

// containerGuards holds the guards of the nodes of this process.
type containerGuards struct {
	logger  *slog.Logger
	closing chan struct{}
	running sync.WaitGroup
}

func newContainerGuards(logger *slog.Logger) *containerGuards {
	return &containerGuards{logger: logger, closing: make(chan struct{})}
}

// start starts the guard of a node, and replaces it if it is killed.
func (g *containerGuards) start(dir, node string) error {
	pipe, guard, err := startGuard(dir, node)
	if err != nil {
		return err
	}
	g.running.Go(func() {
		for g.isKilled(pipe, guard) {
			g.logger.Warn("the guard of containers has ended; starting another one")
			select {
			case <-g.closing:
				return
			case <-time.After(guardPause):
			}
			if pipe, guard, err = startGuard(dir, node); err != nil {
				g.logger.Warn("containers may outlive their leases if this worker is killed", "error", err)
				return
			}
		}
	})
	return nil
}

// isKilled waits for the end of a guard, and reports whether it ended although this process still needs it.
func (g *containerGuards) isKilled(pipe io.Closer, guard *exec.Cmd) bool {
	defer pipe.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = guard.Wait() // its exit status does not matter
	}()
	select {
	case <-ended:
		return true
	case <-g.closing:
	}
	_ = pipe.Close()
	select {
	case <-ended:
	case <-time.After(guardPatience):
	}
	return false
}

// close releases the guards. A guard with a container still to end continues to run.
func (g *containerGuards) close() error {
	close(g.closing)
	g.running.Wait()
	return nil
}
