package shell

import (
	"fmt"
	"strconv"
	"time"

	"switchyard/activities/executor"
)

// renewals is the time between two looks at which leases were renewed.
const renewals = 200 * time.Millisecond

// watchedLease is an attempt that the watchdog knows of by itself.
type watchedLease struct {
	lease *executor.Lease
	// stopping says that this process has asked the attempt to stop.
	stopping bool
	// stopAt and killAt are what was sent to the watchdog.
	stopAt, killAt executor.Instant
}

// deadlines are when the watchdog is to ask the attempt to stop, and to end it. A
// worker that lives asks first, and a program is asked once: for some it means
// something else the second time.
func (h *watchedLease) deadlines() (stopAt, killAt executor.Instant) {
	stopAt, killAt = h.lease.StopAt(), h.lease.KillAt()
	if h.lease == nil || h.stopping {
		return killAt, killAt
	}
	return stopAt.Add(killAt.Sub(stopAt) / 4), killAt
}

// add reports an attempt that must be known by itself: because it has a lease,
// or because it can only be found by its marker.
func (w *watchdog) add(name string, lease *executor.Lease) error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leases[name] = &watchedLease{lease: lease}
	if lease != nil {
		w.follow()
	}
	if w.reportLease("add", name) == nil {
		return nil
	}
	w.drop()
	return w.keepRunning()
}

// stopping notes that the attempt has been asked to stop.
func (w *watchdog) stopping(name string) {
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

// remove reports that an attempt has ended. When the watchdog cannot receive it any
// more, the next attempt starts another.
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
		w.drop()
	}
}

// follow looks from time to time which leases were renewed, until unfollow. mu is held.
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

// reportMove reports the leases whose end has moved. mu is held.
func (w *watchdog) reportMove() {
	for name, h := range w.leases {
		stopAt, killAt := h.deadlines()
		if stopAt == h.stopAt && killAt == h.killAt || w.reportLease("lease", name) == nil {
			continue
		}
		// Another one is sent all attempts.
		w.drop()
		if err := w.keepRunning(); err != nil {
			w.logger.Warn("leases of shell tasks are not watched for now", "error", err)
		}
		return
	}
}

func (w *watchdog) reportLease(verb, name string) error {
	h := w.leases[name]
	h.stopAt, h.killAt = h.deadlines()
	return w.send(fmt.Sprintf("%s %s %d %d", verb, strconv.Quote(name), h.stopAt, h.killAt))
}
