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
	// EnforceStep bounds how long one timer is trusted: timers stand still while
	// the machine sleeps, and the deadlines do not.
	EnforceStep = time.Second
	// Time between two looks at what is left of an attempt whose lease is over: a
	// worker that wakes up may fork one that it was about to. It doubles.
	firstKillPause, lastKillPause = 20 * time.Millisecond, 2 * time.Second
)

// Attempt is what the watchdog knows of an attempt.
type Attempt struct {
	StopAt, KillAt executor.Instant
	// Stopped says that it has been asked to stop.
	Stopped bool
	// Killed is when it was last killed, and pause when it is to be again.
	Killed executor.Instant
	pause  time.Duration
	// finder is nil until it is needed, and with cgroups.
	finder *procfs.Search
}

// Enforce ends the attempts whose lease has ended, and returns how long there
// is nothing more to do; -1: for ever.
func (w *Table) Enforce() (wait time.Duration) {
	now := executor.Now()
	wait = -1
	for name, a := range w.Attempts {
		next := a.StopAt
		switch {
		case a.KillAt == executor.Never:
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
		_ = unix.Kill(pid, unix.SIGTERM)
		_ = unix.Kill(pid, unix.SIGCONT)
	}
	if w.Cgroup != "" {
		_ = cgroup.Freeze(filepath.Join(w.Cgroup, name), false) // it may have been suspended
	}
}

func (w *Table) kill(name string, a *Attempt) {
	if w.Cgroup != "" {
		_ = cgroup.Kill(filepath.Join(w.Cgroup, name))
		return
	}
	for _, pid := range w.pids(name, a) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// pids lists the processes of an attempt.
func (w *Table) pids(name string, a *Attempt) []int {
	if w.Cgroup != "" {
		return cgroup.PIDs(filepath.Join(w.Cgroup, name))
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
