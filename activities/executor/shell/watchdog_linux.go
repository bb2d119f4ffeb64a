package shell

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"switchyard/activities/executor/shell/watchdogproc"

	"golang.org/x/sys/unix"
)

const (
	// patience is how long the watchdog may take to read a message, or to end.
	patience = 3 * time.Second
	// keepPatience is how long the watchdog may take to keep an attempt, which ends otherwise.
	keepPatience = 10 * time.Second
	// mostWatchdogs is how many watchdogs are started before giving up. A user may kill
	// one, but if each ends at once, main does not call ServeIfAsked.
	mostWatchdogs = 10
	// stayed is how long a watchdog must run to reset that count.
	stayed = time.Minute
)

// watchdog is the worker's end of the watchdog process, which reads messages from a socket.
// A nil watchdog does nothing.
//
// There is one message a line. "cgroup DIR" names the directory of all attempts; without
// it, attempts are found by their markers. "add NAME STOP KILL SIGNAL" registers an attempt, by
// the name of its directory or by its marker, with the deadlines of its lease and the
// number of its stop signal. "lease NAME STOP KILL SIGNAL" changes the deadlines, "remove NAME" reports that the attempt has
// ended, "keep" and a watchdogproc.KeepMessage that the worker leaves it, and "bye" precedes a clean end. Strings are quoted.
// Instants are those of executor.Now: all processes read the same clock.
type watchdog struct {
	logger *slog.Logger

	mu sync.Mutex
	// conn is nil while no watchdog process runs.
	conn    *net.UnixConn
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
	// kept has a function for each attempt that the process keeps, which ends the attempt. The lease of the attempt may still change.
	kept map[string]func()
}

func newWatchdog(wanted bool, logger *slog.Logger) *watchdog {
	if !wanted {
		return nil
	}
	w := &watchdog{logger: logger, leases: make(map[string]*watchedLease), kept: make(map[string]func()), path: "/proc/self/exe", left: mostWatchdogs}
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
	if w.conn != nil {
		if w.isRunning() {
			return nil
		}
		w.logger.Warn("the watchdog of shell tasks has ended; starting another one")
		w.killProcess()
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
	own, its, err := socketPair()
	if err != nil {
		return fmt.Errorf("start watchdog: %w", err)
	}
	defer its.Close()
	// A session of its own shields the watchdog from the terminal's signals, and it must
	// not keep the worker's streams open. If main does not call ServeIfAsked, --help
	// makes most programs, including those of `go test`, end at once.
	process, err := os.StartProcess(w.path, []string{watchdogproc.Name, "--help"}, &os.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=1", "GOGC=20"}, Files: []*os.File{null, null, null, its},
		Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		own.Close()
		return fmt.Errorf("start watchdog: %w", err)
	}
	exited := make(chan struct{})
	go func() {
		defer close(exited)
		_, _ = process.Wait()
	}()
	w.process, w.conn, w.exited, w.started = process, own, exited, time.Now()
	// If the process is dead already, the next attempt notices.
	if w.cgroup != "" {
		_ = w.send("cgroup " + strconv.Quote(w.cgroup))
	}
	for _, name := range slices.Sorted(maps.Keys(w.leases)) {
		_ = w.reportLease("add", name)
	}
	return nil
}

// isRunning reports whether the process has not ended. conn is not nil.
func (w *watchdog) isRunning() bool {
	select {
	case <-w.exited:
		return false
	default:
		return true
	}
}

// socketPair returns two connected sockets.
func socketPair() (*net.UnixConn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	own, its := os.NewFile(uintptr(fds[0]), "watchdog"), os.NewFile(uintptr(fds[1]), "watchdog")
	defer own.Close()
	conn, err := net.FileConn(own)
	if err != nil {
		its.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), its, nil
}

// keep makes the process keep an attempt that this worker leaves, and its open files, from now on. end ends the attempt.
func (w *watchdog) keep(m watchdogproc.KeepMessage, files []int, end func()) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn == nil || w.leases[m.Name] == nil {
		return errors.New("no watchdog runs")
	}
	w.conn.SetWriteDeadline(time.Now().Add(patience))
	if _, _, err := w.conn.WriteMsgUnix([]byte("keep "), unix.UnixRights(files...), nil); err != nil {
		return err
	}
	if _, err := w.conn.Write(append(text, '\n')); err != nil {
		return err
	}
	var answer [1]byte
	_ = w.conn.SetReadDeadline(time.Now().Add(keepPatience))
	switch _, err := io.ReadFull(w.conn, answer[:]); {
	case err != nil:
		return err
	case answer[0] != watchdogproc.Keeps:
		return errors.New("the watchdog cannot keep it")
	}
	w.kept[m.Name] = end
	w.leases[m.Name].kept = true
	w.reportMove()
	return nil
}

// send sends a message. It does not block for long: a watchdog that does not read,
// because it was stopped, counts as dead.
func (w *watchdog) send(message string) error {
	if w.conn == nil {
		return nil
	}
	w.conn.SetWriteDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(w.conn, message+"\n"); err != nil {
		return fmt.Errorf("send to watchdog: %w", err)
	}
	return nil
}

// killProcess kills the watchdog's process, if it runs, and waits for its end. The attempts that it keeps end with it.
func (w *watchdog) killProcess() {
	if w.conn == nil {
		return
	}
	_ = w.process.Kill()
	<-w.exited
	w.conn.Close()
	w.conn = nil
	if len(w.kept) > 0 {
		w.logger.Error("the watchdog has ended, and so have the shell tasks that it kept for the next worker", "tasks", len(w.kept))
	}
	for name, end := range w.kept {
		end()
		delete(w.leases, name)
	}
	clear(w.kept)
}

// close lets the process end and waits for it, unless it keeps attempts.
func (w *watchdog) close() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unfollow()
	if w.conn == nil {
		return nil
	}
	w.reportMove()
	if w.conn == nil { // it had ended, and so has what it kept
		return nil
	}
	err := w.send("bye")
	if len(w.kept) > 0 && err == nil && w.isRunning() {
		return w.conn.Close()
	}
	if err == nil {
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
