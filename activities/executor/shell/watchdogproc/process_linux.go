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

// Name is the argv[0] of a watchdog, by which the process recognises its role and which `ps` shows.
const Name = "switchyard-watchdog"

const (
	// inputPipe is the file descriptor that a watchdog reads from.
	inputPipe = 3
	// listenPause is the pause between reads while messages arrive: short tasks cause many messages,
	// and waking up for each costs more than reading it.
	listenPause = 20 * time.Millisecond
)

// Run watches the attempts that it reads about from a pipe; it does not return. If the pipe is closed
// without a "bye", the worker has died, and Run ends all attempts. If a lease ends, the worker is held
// up, and Run ends that attempt.
func Run() {
	// On a clean shutdown, the worker sends "bye" itself.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	if err := KeepWatch(inputPipe); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// Table holds the attempts of the worker.
type Table struct {
	Cgroup   string // directory of the worker's attempts, or ""
	Attempts map[string]*Attempt
}

// NewTable returns a table without attempts.
func NewTable() *Table { return &Table{Attempts: make(map[string]*Attempt)} }

// KeepWatch reads messages from a pipe, given by its descriptor, until its end.
func KeepWatch(pipe int) error {
	w := NewTable()
	buffer := make([]byte, 64<<10)
	var text []byte
	for {
		// Enforce leases only when the pipe is empty: a renewal may still be in it if this process was
		// the one that was held up.
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

// readable waits until the pipe has data or has been closed, and then returns true. It returns false
// after wait; a wait of -1 has no limit.
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

// Receive processes one message. It returns bye for the message that announces a clean end.
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
