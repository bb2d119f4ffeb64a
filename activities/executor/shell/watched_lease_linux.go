package shell

import (
	"fmt"
	"strconv"
	"time"

	"switchyard/activities/executor"
)

// renewals is the interval between checks for renewed leases.
const renewals = 200 * time.Millisecond

// watchedLease is an attempt that is registered with the watchdog.
type watchedLease struct {
	executor.Ending
	// stopping reports that this process has asked the attempt to stop, and kept that it has left the attempt.
	stopping, kept bool
	// stopAt and killAt are the deadlines last sent to the watchdog.
	stopAt, killAt executor.Instant
}

// deadlines returns when the watchdog must ask the attempt to stop, and when it must
// kill it. A live worker asks first, and a program is asked only once, since a second
// signal has another meaning for some programs.
func (h *watchedLease) deadlines() (stopAt, killAt executor.Instant) {
	stopAt, killAt = h.Lease.StopAt(), h.Lease.KillAt()
	if h.Lease == nil || h.stopping {
		return killAt, killAt
	}
	quarter := killAt.Sub(stopAt) / 4
	if h.kept { // its next worker may come until then
		return killAt.Add(-min(quarter, h.Grace)), killAt
	}
	return stopAt.Add(quarter), killAt
}

// add registers an attempt that the watchdog must track individually, because it has a
// lease or can be found only by its marker.
func (w *watchdog) add(name string, e executor.Ending) error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leases[name] = &watchedLease{Ending: e}
	if e.Lease != nil {
		w.follow()
	}
	if w.reportLease("add", name) == nil {
		return nil
	}
	w.killProcess()
	return w.keepRunning()
}

// noteStopping records that the attempt has been asked to stop.
func (w *watchdog) noteStopping(name string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if h := w.leases[name]; h != nil {
		h.stopping = true
		w.reportMove()
	}
}

// remove reports that an attempt has ended. If the watchdog cannot receive the message,
// the next attempt starts another watchdog.
func (w *watchdog) remove(name string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if delete(w.leases, name); len(w.leases) == 0 {
		w.unfollow()
	}
	if w.send("remove "+strconv.Quote(name)) != nil {
		w.killProcess()
	}
}

// follow starts to check regularly for renewed leases, until unfollow. The caller holds
// mu.
func (w *watchdog) follow() {
	if w.tick != nil {
		return
	}
	var tick *time.Timer
	tick = time.AfterFunc(renewals, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.tick == tick {
			w.reportMove()
			tick.Reset(renewals)
		}
	})
	w.tick = tick
}

func (w *watchdog) unfollow() {
	if w.tick != nil {
		w.tick.Stop()
		w.tick = nil
	}
}

// reportMove reports the leases whose deadlines have changed. The caller holds mu.
func (w *watchdog) reportMove() {
	for name, h := range w.leases {
		stopAt, killAt := h.deadlines()
		if stopAt == h.stopAt && killAt == h.killAt || w.reportLease("lease", name) == nil {
			continue
		}
		// A new watchdog is sent all attempts.
		w.killProcess()
		if err := w.keepRunning(); err != nil {
			w.logger.Warn("cannot start a watchdog; leases of shell tasks are not enforced for now", "error", err)
		}
		return
	}
}

func (w *watchdog) reportLease(verb, name string) error {
	h := w.leases[name]
	h.stopAt, h.killAt = h.deadlines()
	return w.send(fmt.Sprintf("%s %s %d %d %d", verb, strconv.Quote(name), h.stopAt, h.killAt, stopSignal(h.Ending)))
}
