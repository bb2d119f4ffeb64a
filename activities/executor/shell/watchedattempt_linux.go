package shell

import (
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell/cgroup"
	"switchyard/activities/executor/shell/procfs"
)

const (
	// enforceStep bounds how long one timer is trusted: timers stand still while
	// the machine sleeps, and the deadlines do not.
	enforceStep = time.Second
	// Time between two looks at what is left of an attempt whose lease is over: a
	// worker that wakes up may fork one that it was about to. It doubles.
	firstKillPause, lastKillPause = 20 * time.Millisecond, 2 * time.Second
)

// watchedAttempt is what the watchdog knows of an attempt.
type watchedAttempt struct {
	stopAt, killAt executor.Instant
	// stopped says that it has been asked to stop.
	stopped bool
	// killed is when it was last killed, and pause when it is to be again.
	killed executor.Instant
	pause  time.Duration
	// finder is nil until it is needed, and with cgroups.
	finder *procfs.Search
}

// enforce ends the attempts whose lease has ended, and returns how long there
// is nothing more to do; -1: for ever.
func (w *watched) enforce() (wait time.Duration) {
	now := executor.Now()
	wait = -1
	for name, a := range w.attempts {
		next := a.stopAt
		switch {
		case a.killAt == executor.Never:
			continue
		case now >= a.killAt:
			if now >= a.killed.Add(a.pause) {
				w.kill(name, a)
				a.killed, a.pause = now, min(max(2*a.pause, firstKillPause), lastKillPause)
			}
			next = a.killed.Add(a.pause)
		case a.stopped:
			next = a.killAt
		case now >= a.stopAt:
			w.terminate(name, a)
			a.stopped = true
			next = a.killAt
		}
		left := max(next.Sub(now), 0)
		if wait < 0 || left < wait {
			wait = min(left, enforceStep)
		}
	}
	return wait
}

func (w *watched) terminate(name string, a *watchedAttempt) {
	for _, pid := range w.pids(name, a) {
		_ = unix.Kill(pid, unix.SIGTERM)
		_ = unix.Kill(pid, unix.SIGCONT)
	}
	if w.cgroup != "" {
		_ = cgroup.Freeze(filepath.Join(w.cgroup, name), false) // it may have been suspended
	}
}

func (w *watched) kill(name string, a *watchedAttempt) {
	if w.cgroup != "" {
		_ = cgroup.Kill(filepath.Join(w.cgroup, name))
		return
	}
	for _, pid := range w.pids(name, a) {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

// pids lists the processes of an attempt.
func (w *watched) pids(name string, a *watchedAttempt) []int {
	if w.cgroup != "" {
		return cgroup.PIDs(filepath.Join(w.cgroup, name))
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
