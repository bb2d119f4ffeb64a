package shell

import (
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"switchyard/activities/executor/shell/watchdogproc"
)

const (
	// patience is how long the watchdog may take to read a message, or to end.
	patience = 3 * time.Second
	// mostWatchdogs is how many watchdogs are started before giving up. A user may kill
	// one, but if each ends at once, main does not call ServeIfAsked.
	mostWatchdogs = 10
	// stayed is how long a watchdog must run to reset that count.
	stayed = time.Minute
)

// watchdog is the worker's end of the watchdog process, which reads messages from a pipe.
// A nil watchdog does nothing.
//
// There is one message a line. "cgroup DIR" names the directory of all attempts; without
// it, attempts are found by their markers. "add NAME STOP KILL" registers an attempt, by
// the name of its directory or by its marker, with the deadlines of its lease. "lease
// NAME STOP KILL" changes the deadlines, "remove NAME" reports that the attempt has
// ended, and "bye" precedes a clean end. Strings are quoted. Instants are those of
// executor.Now, whose clock is the same in all processes.
type watchdog struct {
	logger *slog.Logger

	mu sync.Mutex
	// pipe is nil while no watchdog process runs.
	pipe    *os.File
	process *os.Process
	exited  chan struct{}
	leases  map[string]*watchedLease
	cgroup  string
	// tick is nil unless attempts with leases run.
	tick *time.Timer
	// path is the program to start, which is this one. left is how many more times it may
	// be started.
	path    string
	left    int
	started time.Time
}

func newWatchdog(wanted bool, logger *slog.Logger) *watchdog {
	if !wanted {
		return nil
	}
	w := &watchdog{logger: logger, leases: make(map[string]*watchedLease), path: "/proc/self/exe", left: mostWatchdogs}
	if os.Args[0] == watchdogproc.Name {
		// main does not call ServeIfAsked, so this process was meant to be a watchdog and
		// runs as a worker instead.
		w.left = 0
	}
	return w
}

// ensure starts the watchdog process unless it is running.
func (w *watchdog) ensure(all treeFactory) error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if c, ok := all.(*cgroupFactory); ok {
		w.cgroup = c.parent.Path
	}
	return w.keepRunning()
}

func (w *watchdog) keepRunning() error {
	if w.pipe != nil {
		select {
		case <-w.exited:
			w.logger.Warn("the watchdog of shell tasks has ended; starting another one")
			w.killProcess()
		default:
			return nil
		}
	}
	if time.Since(w.started) > stayed && w.left > 0 {
		w.left = mostWatchdogs
	}
	switch w.left {
	case 0:
		return nil
	case 1:
		w.left = 0
		w.logger.Error("the watchdog of shell tasks keeps ending; from now on tasks may outlive a killed worker",
			"hint", "main must call ServeIfAsked before anything else")
		return nil
	}
	w.left--
	return w.start()
}

func (w *watchdog) start() error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return fmt.Errorf("start watchdog: %w", err)
	}
	defer null.Close()
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("start watchdog: %w", err)
	}
	defer read.Close()
	// A session of its own shields the watchdog from the terminal's signals, and it must
	// not keep the worker's streams open. If main does not call ServeIfAsked, --help
	// makes most programs, including those of `go test`, end at once.
	process, err := os.StartProcess(w.path, []string{watchdogproc.Name, "--help"}, &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=1", "GOGC=20"}, Files: []*os.File{null, null, null, read},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		write.Close()
		return fmt.Errorf("start watchdog: %w", err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_, _ = process.Wait()
	}()
	w.process, w.pipe, w.exited, w.started = process, write, exited, time.Now()
	// If the process is dead already, the next attempt notices.
	if w.cgroup != "" {
		_ = w.send("cgroup " + strconv.Quote(w.cgroup))
	}
	for _, name := range slices.Sorted(maps.Keys(w.leases)) {
		_ = w.reportLease("add", name)
	}
	return nil
}

// send sends a message. It does not block for long: a watchdog that does not read,
// because it was stopped, counts as dead.
func (w *watchdog) send(message string) error {
	if w.pipe == nil {
		return nil
	}
	w.pipe.SetWriteDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(w.pipe, message+"\n"); err != nil {
		return fmt.Errorf("send to watchdog: %w", err)
	}
	return nil
}

// killProcess kills the watchdog's process, if it runs, and waits for its end.
func (w *watchdog) killProcess() {
	if w.pipe == nil {
		return
	}
	_ = w.process.Kill()
	<-w.exited
	w.pipe.Close()
	w.pipe = nil
}

// close lets the process end and waits for it.
func (w *watchdog) close() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unfollow()
	if w.pipe == nil {
		return nil
	}
	if w.send("bye") == nil {
		timer := time.NewTimer(patience)
		defer timer.Stop()
		select {
		case <-w.exited:
		case <-timer.C:
			w.logger.Warn("the watchdog of shell tasks did not exit in time; killing it")
		}
	}
	w.killProcess()
	return nil
}
