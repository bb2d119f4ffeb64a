package shell

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
)

// watchdogName is the watchdog's argv[0]; it is how a process knows that it is
// one, and what `ps` shows.
const watchdogName = "switchyard-watchdog"

// RunWatchdogIfAsked runs the watchdog and exits when this process was started
// to be one, and returns at once otherwise. It is the first call of main, and of
// TestMain where tests use Options.Watchdog: a watchdog is the same binary, and
// should do nothing else.
//
// The watchdog reads from a pipe what there is to watch. When the pipe is closed
// without a good-bye, the worker has died, and it ends all attempts.
func RunWatchdogIfAsked() {
	if os.Args[0] != watchdogName {
		return
	}
	// Whoever ends the worker politely gets a good-bye from it.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	if err := keepWatch(os.NewFile(3, "pipe")); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// watched is what the watchdog ends when the worker dies.
type watched struct {
	cgroup string
	marks  map[string]bool
}

func keepWatch(pipe io.Reader) error {
	w := watched{marks: make(map[string]bool)}
	lines := bufio.NewReader(pipe)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return w.endAll()
		}
		bye, err := w.hear(line)
		if err != nil {
			return errors.Join(err, w.endAll())
		}
		if bye {
			return nil
		}
	}
}

// hear takes one message.
func (w *watched) hear(line string) (bye bool, err error) {
	verb, quoted, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
	argument, err := strconv.Unquote(quoted)
	if err != nil {
		return false, fmt.Errorf("message %q: %w", line, err)
	}
	switch verb {
	case "cgroup":
		w.cgroup = argument
	case "add":
		w.marks[argument] = true
	case "remove":
		delete(w.marks, argument)
	case "bye":
		return true, nil
	default:
		return false, fmt.Errorf("message %q: unknown verb", line)
	}
	return false, nil
}

func (w *watched) endAll() error {
	var wait sync.WaitGroup
	errs := make(chan error, len(w.marks))
	for id := range w.marks {
		wait.Go(func() { errs <- endMarked(id) })
	}
	var err error
	if w.cgroup != "" {
		err = clearCgroup(w.cgroup)
	}
	wait.Wait()
	close(errs)
	for e := range errs {
		err = errors.Join(err, e)
	}
	return err
}

// endMarked ends the processes of an attempt of the dead worker.
func endMarked(id string) error {
	f := newFinder(id)
	return endAll(func() []process {
		living, _ := f.find()
		return living
	}, func(left []process) error { return fmt.Errorf("%s: processes %v survive SIGKILL", id, left) })
}
