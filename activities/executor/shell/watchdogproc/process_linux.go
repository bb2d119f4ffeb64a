package watchdogproc

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
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
	// input is the descriptor of the socket that a watchdog reads from.
	input = 3
	// listenPause is the pause between reads while messages arrive: short tasks cause many messages,
	// and waking up for each costs more than reading it.
	listenPause = 20 * time.Millisecond
)

// Run watches the attempts that it reads about from a socket; it does not return. If the socket is closed
// without a "bye", the worker has died, and Run ends all attempts but those that it keeps. If a lease ends, the worker is held
// up or gone, and Run ends that attempt.
func Run() {
	// On a clean shutdown, the worker sends "bye" itself.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	if err := KeepWatch(input); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// Table holds the attempts of the worker. Its methods may be called by several goroutines at once.
type Table struct {
	mu       sync.Mutex
	Cgroup   string // directory of the worker's attempts, or ""
	Attempts map[string]*Attempt
	// kept holds the attempts that the worker has left, by name. arrived holds the open files that came with messages and have not been
	// claimed yet.
	kept    map[string]*kept
	arrived []int
	// answers has an answer for each message "keep" that has not been answered yet.
	answers []byte
}

// NewTable returns a table without attempts.
func NewTable() *Table {
	return &Table{Attempts: make(map[string]*Attempt), kept: make(map[string]*kept)}
}

// KeepWatch reads messages from a socket, given by its descriptor, until its end, and then watches the kept attempts until none is
// left.
func KeepWatch(socket int) error {
	w := NewTable()
	err := w.follow(socket)
	w.keepOn()
	return err
}

// follow reads messages until the end of the socket or of the worker.
func (w *Table) follow(socket int) error {
	buffer, oob := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4*keptFiles))
	var text []byte
	for {
		// Enforce leases only when the pipe is empty: a renewal may still be in it if this process was
		// the one that was held up.
		if ready, err := readable(socket, 0); err != nil || !ready {
			if err == nil {
				_, err = readable(socket, w.Enforce())
			}
			if err != nil {
				return errors.Join(err, w.endAll())
			}
			continue
		}
		n, oobn, _, _, err := unix.Recvmsg(socket, buffer, oob, unix.MSG_CMSG_CLOEXEC)
		if err == unix.EINTR || err == unix.EAGAIN {
			continue
		}
		if err != nil || n == 0 {
			return errors.Join(err, w.endAll())
		}
		if files, err := received(oob[:oobn]); err == nil {
			w.arrived = append(w.arrived, files...)
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
		if w.keeps(socket) || n == len(buffer) { // the worker is stopping, and waits
			continue
		}
		time.Sleep(listenPause)
	}
}

// readable waits until the socket has data or has been closed, and then returns true. It returns false
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
	w.mu.Lock()
	defer w.mu.Unlock()
	verb, rest, _ := strings.Cut(line, " ")
	switch verb {
	case "bye":
		return true, nil
	case "keep":
		return false, w.keep(rest)
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
		if _, err := fmt.Sscan(rest[len(quoted):], &a.StopAt, &a.KillAt, &a.Signal); err != nil {
			return false, fmt.Errorf("message %q: %w", line, err)
		}
	case "remove":
		delete(w.Attempts, argument)
		w.drop(argument) // the worker has not heard in time that it is kept, and has ended it
	default:
		return false, fmt.Errorf("message %q: unknown verb", line)
	}
	return false, nil
}

// endAll ends all attempts but the kept ones.
func (w *Table) endAll() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var wait sync.WaitGroup
	errs := make(chan error, len(w.Attempts)+1)
	var keep []string
	for name := range w.Attempts {
		switch path := w.directory(name); {
		case w.kept[name] != nil:
			keep = append(keep, path)
		case w.Cgroup == "":
			wait.Go(func() { errs <- procfs.KillMarked(name) })
		case filepath.IsAbs(name): // an earlier worker has made the directory
			wait.Go(func() { errs <- cgroup.Clear(path) })
		}
	}
	if w.Cgroup != "" {
		errs <- cgroup.ClearExcept(w.Cgroup, keep)
	}
	wait.Wait()
	close(errs)
	var err error
	for e := range errs {
		err = errors.Join(err, e)
	}
	return err
}
