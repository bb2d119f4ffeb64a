package watchdogproc

import (
	"path/filepath"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/cgroup"
	"switchyard/activities/executor/shell/procfs"

	"golang.org/x/sys/unix"
)

const (
	// EnforceStep bounds how long a single timer is trusted: timers stand still
	// while the machine sleeps, but the deadlines do not.
	EnforceStep = time.Second
	// Pauses between kills of an attempt whose lease is over: a worker that wakes
	// up may complete a fork. The pause doubles from the first to the last value.
	firstKillPause, lastKillPause = 20 * time.Millisecond, 2 * time.Second
)

// Attempt is an attempt registered with the watchdog.
type Attempt struct {
	StopAt, KillAt executor.Instant
	// Signal asks the attempt to stop.
	Signal unix.Signal
	// Stopped reports that the watchdog has asked the attempt to stop.
	Stopped bool
	// Killed is when the attempt was last killed, and pause the time until the
	// next kill.
	Killed executor.Instant
	pause  time.Duration
	// ended reports that the kept attempt has ended by itself before its lease.
	ended bool
	// finder is nil until it is needed, and always nil with cgroups.
	finder *procfs.Search
}

// Enforce stops and kills the attempts whose deadlines have passed. It returns
// the time until it must be called again, or -1 if there are no deadlines.
func (w *Table) Enforce() (wait time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.enforce()
}

// enforce does the work of Enforce. The caller holds mu.
func (w *Table) enforce() (wait time.Duration) {
	now := executor.Now()
	wait = -1
	for name, a := range w.Attempts {
		next := a.StopAt
		switch {
		case a.KillAt == executor.Never:
			continue
		case now >= a.StopAt && w.settle(name, a, now >= a.KillAt):
			continue
		case now >= a.KillAt:
			if now >= a.Killed.Add(a.pause) {
				w.kill(name, a)
				a.Killed, a.pause = now, min(max(2*a.pause, firstKillPause), lastKillPause)
			}
			next = a.Killed.Add(a.pause)
		case a.Stopped:
			next = a.KillAt
		case now >= a.StopAt:
			w.terminate(name, a)
			a.Stopped = true
			next = a.KillAt
		}
		left := max(next.Sub(now), 0)
		if wait < 0 || left < wait {
			wait = min(left, EnforceStep)
		}
	}
	return wait
}

func (w *Table) terminate(name string, a *Attempt) {
	for _, pid := range w.pids(name, a) {
		_ = unix.Kill(pid, a.Signal)
		_ = unix.Kill(pid, unix.SIGCONT)
	}
	if w.Cgroup != "" {
		_ = cgroup.Freeze(w.directory(name), false) // the attempt may be suspended
	}
}

func (w *Table) kill(name string, a *Attempt) {
	if w.Cgroup != "" {
		_ = cgroup.Kill(w.directory(name))
		return
	}
	for _, pid := range w.pids(name, a) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// directory returns the cgroup of an attempt. The name of one that an earlier worker has started is its path.
func (w *Table) directory(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(w.Cgroup, name)
}

// pids returns the PIDs of an attempt.
func (w *Table) pids(name string, a *Attempt) []int {
	if w.Cgroup != "" {
		return cgroup.PIDs(w.directory(name))
	}
	if a.finder == nil {
		a.finder = procfs.NewSearch(name)
	}
	living, _ := a.finder.Find()
	pids := make([]int, 0, len(living))
	for _, p := range living {
		pids = append(pids, p.PID)
	}
	return pids
}
