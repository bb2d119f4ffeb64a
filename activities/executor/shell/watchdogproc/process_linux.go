package watchdogproc

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

	"switchyard/activities/executor/shell/cgroup"
	"switchyard/activities/executor/shell/procfs"

	"golang.org/x/sys/unix"
)

// Name is the watchdog's argv[0]; it is how a process knows that it is
// one, and what `ps` shows.
const Name = "switchyard-watchdog"

const (
	// inputPipe is the descriptor that a watchdog reads from.
	inputPipe = 3
	// listenPause is the time between two looks into the pipe while there is something
	// in it: short tasks have a lot to report, and waking up for each costs more than to read.
	listenPause = 20 * time.Millisecond
)

// Run reads from a pipe what there is to watch; it does not return. When the
// pipe is closed without a good-bye, the worker has died, and it ends all attempts. When
// a lease ends, the worker is held up, and it ends that attempt.
func Run() {
	// Whoever ends the worker politely gets a good-bye from it.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	if err := KeepWatch(inputPipe); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// Table is what the watchdog ends when the worker dies.
type Table struct {
	Cgroup   string // of the worker's attempts, or ""
	Attempts map[string]*Attempt
}

// NewTable returns a table without attempts.
func NewTable() *Table { return &Table{Attempts: make(map[string]*Attempt)} }

// KeepWatch reads from a pipe, given by its descriptor, to the end.
func KeepWatch(pipe int) error {
	w := NewTable()
	buffer := make([]byte, 64<<10)
	var text []byte
	for {
		// A lease ends only when all was received: its renewal may be in the pipe,
		// where this process is the one that was held up.
		if ready, err := readable(pipe, 0); err != nil || !ready {
			if err == nil {
				_, err = readable(pipe, w.Enforce())
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
			bye, err := w.Receive(string(line))
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

// Receive takes one message.
func (w *Table) Receive(line string) (bye bool, err error) {
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
		w.Cgroup = argument
	case "add", "lease":
		a := w.Attempts[argument]
		if a == nil {
			a = &Attempt{}
			w.Attempts[argument] = a
		}
		if _, err := fmt.Sscan(rest[len(quoted):], &a.StopAt, &a.KillAt); err != nil {
			return false, fmt.Errorf("message %q: %w", line, err)
		}
	case "remove":
		delete(w.Attempts, argument)
	default:
		return false, fmt.Errorf("message %q: unknown verb", line)
	}
	return false, nil
}

func (w *Table) endAll() error {
	if w.Cgroup != "" {
		return cgroup.Clear(w.Cgroup)
	}
	var wait sync.WaitGroup
	errs := make(chan error, len(w.Attempts))
	for id := range w.Attempts {
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
