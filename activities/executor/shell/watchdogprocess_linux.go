package shell

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor/shell/cgroup"
	"switchyard/activities/executor/shell/procfs"
)

// watchdogName is the watchdog's argv[0]; it is how a process knows that it is
// one, and what `ps` shows.
const watchdogName = "switchyard-watchdog"

const (
	// watchdogPipe is the descriptor that a watchdog reads from.
	watchdogPipe = 3
	// listenPause is the time between two looks into the pipe while there is something
	// in it: short tasks have a lot to report, and waking up for each costs more than to read.
	listenPause = 20 * time.Millisecond
)

// runWatchdog reads from a pipe what there is to watch; it does not return. When the
// pipe is closed without a good-bye, the worker has died, and it ends all attempts. When
// a lease ends, the worker is held up, and it ends that attempt.
func runWatchdog() {
	// Whoever ends the worker politely gets a good-bye from it.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	if err := keepWatch(watchdogPipe); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// watched is what the watchdog ends when the worker dies.
type watched struct {
	cgroup   string
	attempts map[string]*watchedAttempt
}

func newWatched() *watched { return &watched{attempts: make(map[string]*watchedAttempt)} }

// keepWatch reads from a pipe, given by its descriptor, to the end.
func keepWatch(pipe int) error {
	w := newWatched()
	buffer := make([]byte, 64<<10)
	var text []byte
	for {
		// A lease ends only when all was received: its renewal may be in the pipe,
		// where this process is the one that was held up.
		if ready, err := readable(pipe, 0); err != nil || !ready {
			if err == nil {
				_, err = readable(pipe, w.enforce())
			}
			if err != nil {
				return errors.Join(err, w.endAll())
			}
			continue
		}
		n, err := unix.Read(pipe, buffer)
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		if err != nil || n == 0 {
			return errors.Join(err, w.endAll())
		}
		text = append(text, buffer[:n]...)
		for {
			line, rest, whole := bytes.Cut(text, []byte{'\n'})
			if !whole {
				break
			}
			text = rest
			bye, err := w.receive(string(line))
			if err != nil {
				return errors.Join(err, w.endAll())
			}
			if bye {
				return nil
			}
		}
		time.Sleep(listenPause)
	}
}

// readable waits until there is something to read, the end included, or the time is over; -1: for ever.
func readable(fd int, wait time.Duration) (bool, error) {
	ms := -1
	if wait >= 0 {
		ms = int((wait + time.Millisecond - 1) / time.Millisecond)
	}
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, ms)
	if err == unix.EINTR {
		return false, nil
	}
	return n > 0, err
}

// receive takes one message.
func (w *watched) receive(line string) (bye bool, err error) {
	verb, rest, _ := strings.Cut(line, " ")
	if verb == "bye" {
		return true, nil
	}
	quoted, err := strconv.QuotedPrefix(rest)
	if err != nil {
		return false, fmt.Errorf("message %q: %w", line, err)
	}
	argument, err := strconv.Unquote(quoted)
	if err != nil {
		return false, fmt.Errorf("message %q: %w", line, err)
	}
	switch verb {
	case "cgroup":
		w.cgroup = argument
	case "add", "lease":
		a := w.attempts[argument]
		if a == nil {
			a = &watchedAttempt{}
			w.attempts[argument] = a
		}
		if _, err := fmt.Sscan(rest[len(quoted):], &a.stopAt, &a.killAt); err != nil {
			return false, fmt.Errorf("message %q: %w", line, err)
		}
	case "remove":
		delete(w.attempts, argument)
	default:
		return false, fmt.Errorf("message %q: unknown verb", line)
	}
	return false, nil
}

func (w *watched) endAll() error {
	if w.cgroup != "" {
		return cgroup.Clear(w.cgroup)
	}
	var wait sync.WaitGroup
	errs := make(chan error, len(w.attempts))
	for id := range w.attempts {
		wait.Go(func() { errs <- procfs.KillMarked(id) })
	}
	wait.Wait()
	close(errs)
	var err error
	for e := range errs {
		err = errors.Join(err, e)
	}
	return err
}
