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
	// guardSign is the interval between two signs of life that a worker sends to its guard. A worker that sends none for
	// guardSilence is stalled.
	guardSign, guardSilence = 500 * time.Millisecond, 5 * time.Second
)

// ServeGuardIfAsked runs this process as a guard and does not return if it was started as one. Main calls it first.
//
// The arguments are the state folder, the name of the node and its fleet. The worker writes its signs of life to standard input,
// which ends with the worker. After that, the guard runs only while there are containers to end.
func ServeGuardIfAsked() {
	if os.Args[0] != guardName || len(os.Args) != 4 {
		return
	}
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	containers, err := container.New(container.Options{})
	if err != nil {
		os.Exit(1)
	}
	w := &guardedWorker{sign: time.Now()}
	go w.listen(os.Stdin)
	keeper := &taskrunner.Keeper{Dir: os.Args[1], Node: os.Args[2], Fleet: os.Args[3], Executor: containers}
	guardContainers(context.Background(), keeper, w)
	os.Exit(0)
}

// guardedWorker is what a guard knows of its worker.
type guardedWorker struct {
	mu sync.Mutex
	// sign is when the worker last gave a sign of life. gone reports that it has ended.
	sign time.Time
	gone bool
}

// listen reads the signs of life of the worker until it ends.
func (w *guardedWorker) listen(signs io.Reader) {
	buffer := make([]byte, 64)
	for {
		_, err := signs.Read(buffer)
		w.mu.Lock()
		w.sign, w.gone = time.Now(), err != nil
		w.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// state returns whether the worker has ended, or else whether it is stalled. What started before an instant may be the worker's;
// what started later is of the next worker.
func (w *guardedWorker) state() (before time.Time, gone, stalled bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.gone {
		return w.sign, true, false
	}
	return time.Now(), false, time.Since(w.sign) > guardSilence
}

// guardContainers ends containers of a node that have outlived their worker or their lease, until the worker has ended and no
// such container is left.
func guardContainers(ctx context.Context, keeper *taskrunner.Keeper, w *guardedWorker) {
	var until time.Time // deadline of a guard without a worker
	for cleared := false; ; time.Sleep(guardStep) {
		before, gone, stalled := w.state()
		call, cancel := context.WithTimeout(ctx, guardCall)
		remaining, err := keeper.EndOverdue(call)
		if gone && !cleared || stalled {
			cleared = keeper.EndUnrecoverable(call, before) == nil && gone
		}
		cancel()
		if !gone {
			continue
		}
		if until.IsZero() {
			until = time.Now().Add(guardAlone)
		}
		if cleared && remaining == 0 && err == nil || time.Now().After(until) {
			return
		}
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
func (g *containerGuards) start(dir, node, fleet string) error {
	pipe, guard, err := startGuard(dir, node, fleet)
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
			if pipe, guard, err = startGuard(dir, node, fleet); err != nil {
				g.logger.Warn("containers may outlive their leases if this worker is killed", "error", err)
				return
			}
		}
	})
	return nil
}

// isKilled sends signs of life to a guard until it ends, and reports whether it ended although this process still needs it.
func (g *containerGuards) isKilled(pipe io.WriteCloser, guard *exec.Cmd) bool {
	defer pipe.Close()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = guard.Wait() // its exit status does not matter
	}()
	signs := time.NewTicker(guardSign)
	defer signs.Stop()
	for needed := true; needed; {
		select {
		case <-ended:
			return true
		case <-signs.C:
			_, _ = pipe.Write([]byte{0}) // an error means that the guard has ended
		case <-g.closing:
			needed = false
		}
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
