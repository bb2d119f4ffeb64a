package shell

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
)

// hangUpWait is how long a program may run after the SIGHUP that it gets when its caller has left.
const hangUpWait = 2 * time.Second

// streams are the standard streams of a program that runs beside the attempt's own.
type streams interface {
	// files returns standard input, output and error. started closes them.
	files() [3]*os.File
	// started is called once the program has started or failed to start.
	started()
	// begin starts to forward input and output.
	begin()
	// finish forwards the remaining output once the program has ended, and releases the streams.
	finish() error
}

// Exec runs a program in the attempt.
func (in *entered) Exec(ctx context.Context, c executor.Command) (executor.ExitStatus, error) {
	p, err := in.command(c)
	if err != nil {
		return statusOfFailedStart(err)
	}
	var s streams
	var resizes <-chan executor.WindowSize
	if c.Terminal != nil {
		s, err = newTerminal(c, in.process)
		resizes = c.Terminal.Resizes
	} else {
		s, err = newPiped(c, in.executor)
	}
	if err != nil {
		return executor.ExitStatus{}, err
	}
	process, err := in.attempt.enter(ctx, p, s.files(), c.Terminal != nil)
	s.started()
	if err != nil {
		return statusOfFailedStart(errors.Join(err, s.finish()))
	}
	s.begin()
	one := &companion{pid: process.Pid}
	exited := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		one.watch(ctx, exited, in.attempt.beside.ending(), c.Signals, resizes, s)
	})
	one.awaitExit()
	state, err := process.Wait()
	close(exited)
	watch.Wait()
	in.attempt.tree.dismiss(process.Pid)
	in.attempt.beside.done()
	if err = errors.Join(err, s.finish()); state == nil {
		return executor.ExitStatus{}, err
	}
	result := resultOf(state)
	return executor.ExitStatus{Code: result.ExitCode, Signal: strings.TrimPrefix(result.Signal, "SIG")}, err
}

// statusOfFailedStart returns the status of a program that failed to start, with the exit code that a shell would
// return.
func statusOfFailedStart(err error) (executor.ExitStatus, error) {
	if start := executor.AsStartError(err); start != nil {
		return executor.ExitStatus{Code: start.ExitCode}, err
	}
	return executor.ExitStatus{}, err
}

// enter starts a program beside that of the attempt.
func (r *running) enter(ctx context.Context, p program, files [3]*os.File, terminal bool) (*os.Process, error) {
	r.steer.Lock()
	defer r.steer.Unlock()
	if r.isEnding() {
		return nil, executor.ErrNotRunning
	}
	if r.suspended {
		return nil, &executor.Refusal{Text: "the task is paused; resume it before you run a program in it"}
	}
	return r.beside.start(func() (*os.Process, error) {
		attr := r.tree.attr()
		attr.Setctty = terminal // of standard input
		if p.sandbox {
			process, err := r.enterBox(ctx, p, files[:], attr)
			if err == errStopped {
				err = context.Cause(ctx)
			}
			return process, err
		}
		process, err := r.tree.admit(func() (*os.Process, error) {
			return r.tree.forker.Start(p.path, p.argv, &os.ProcAttr{Dir: p.dir, Env: p.environ, Files: files[:], Sys: attr})
		})
		if err != nil {
			return nil, startError(p.argv[0], err)
		}
		return process, nil
	})
}

// companion is a program that runs beside the attempt's own. It leads a session, and thus a process group.
type companion struct {
	pid int

	mu     sync.Mutex
	exited bool
}

// awaitExit waits for the end of the program without reaping it, so that no other process can get its PID yet.
func (c *companion) awaitExit() {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, c.pid, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.exited = true
}

// signal signals the program's process group, unless the program has ended.
func (c *companion) signal(s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exited {
		return
	}
	_ = syscall.Kill(-c.pid, s)
	if s == syscall.SIGHUP || s == syscall.SIGTERM {
		_ = syscall.Kill(-c.pid, syscall.SIGCONT) // a stopped program would not see the signal otherwise
	}
}

// watch forwards signals and terminal sizes until the program has exited. It hangs up when ctx or the attempt
// ends.
func (c *companion) watch(ctx context.Context, exited, ending <-chan struct{}, signals <-chan string, resizes <-chan executor.WindowSize, s streams) {
	gone := ctx.Done()
	var late <-chan time.Time
	hangUp := func(wait time.Duration) {
		c.signal(syscall.SIGHUP)
		late = time.After(wait)
	}
	for {
		select {
		case <-exited:
			return
		case <-late:
			c.signal(syscall.SIGKILL)
			late = nil
		case <-gone:
			gone = nil
			hangUp(hangUpWait)
		case <-ending:
			gone, ending = nil, nil
			hangUp(linger)
		case name, ok := <-signals:
			if !ok {
				signals = nil
			} else if number := signalNumber(name); number != 0 {
				c.signal(number)
			}
		case size, ok := <-resizes:
			if !ok {
				resizes = nil
			} else if t, ok := s.(*terminal); ok {
				t.resize(size)
			}
		}
	}
}

// errNoTerminal wraps the error of creating a terminal.
func errNoTerminal(err error) error { return fmt.Errorf("create a terminal: %w", err) }
