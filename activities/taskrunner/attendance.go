package taskrunner

import (
	"sync"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/heartbeat"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// activityRef is an activity that waits for an attempt, as the server knows it.
type activityRef struct {
	heartbeat.Activity
	token []byte
	// heartbeat is the heartbeat time-out with which the activity began.
	heartbeat time.Duration
	// number counts the activities of the attempt, from 1.
	number int
}

// attendance is which activity waits for an attempt, and the answer that it waits for. The lease of the attempt follows the
// time-out of that activity. mu protects the fields below it, and orders changes of the lease with them. The lock of the recovery
// file may be taken while mu is held.
type attendance struct {
	file    *recoveryFile
	lease   *executor.Lease
	beatNow func() // requests an immediate heartbeat
	// isLasting reports whether the attempt continues even if the server does not know its activity any more.
	isLasting func() bool

	// first is closed when the activity that brought the attempt is to leave it.
	first <-chan struct{}
	// done is closed when the attempt has its answer, res and err. fetched is closed when no caller needs that answer any
	// more.
	done, fetched chan struct{}
	// unattended holds one signal: no activity waits for the lasting attempt any more.
	unattended chan struct{}

	mu  sync.Mutex
	res *historyv1.ExecuteResponse
	err error
	// activity is the newest activity that waits, or has waited, for the attempt. left is closed when it is to leave the attempt,
	// and is nil once it has.
	activity activityRef
	left     chan struct{}
	// inUse is the heartbeat time-out of the activity that the lease follows, and acked its acknowledged heartbeats.
	inUse time.Duration
	acked acknowledged
	// leftAt is when the activity left, and alone how long its run then waits for the attempt, which ends earlier. released is set
	// once the server has the activity's answer.
	leftAt   executor.Instant
	alone    time.Duration
	released bool
}

// newAttendance returns the attendance of an attempt that an activity has just brought.
func newAttendance(of activityRef, file *recoveryFile, beatNow func(), isLasting func() bool) *attendance {
	left := make(chan struct{})
	of.number = 1
	w := &attendance{
		file: file, beatNow: beatNow, isLasting: isLasting, first: left, done: make(chan struct{}), fetched: make(chan struct{}),
		unattended: make(chan struct{}, 1), activity: of, left: left,
	}
	// The server counts from when it handed out the task, a time that the node does not know. Until the first heartbeat is
	// acknowledged, this lease only bounds how long the attempt waits.
	stop, kill := leaseEnds(of.heartbeat, of.heartbeat, 0)
	w.inUse = of.heartbeat
	w.lease = executor.NewLease(executor.Now(), stop, kill)
	return w
}

// reattach makes an activity the one that waits for the attempt. The returned channel is closed when that activity is to
// leave.
func (w *attendance) reattach(of activityRef) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left != nil { // the server judges the attempt by the time-out of the new activity from now on
		close(w.left)
		w.lease.Resize(leaseEnds(of.heartbeat, of.heartbeat, 0))
	} // else its run counts with the lease of the detached attempt until the server has a heartbeat of the new activity
	left := make(chan struct{})
	w.beatNow() // report to the server at once that the attempt runs
	of.number = w.activity.number + 1
	w.activity, w.left, w.released = of, left, false
	w.inUse, w.acked = of.heartbeat, nil
	w.file.update(func(k *recoveryState) { k.attend(of); k.AloneUntil = time.Time{} })
	return left
}

// renew renews the lease when the server has acknowledged a heartbeat of an activity that was sent at an instant. The lease
// becomes that of a new activity.
func (w *attendance) renew(of activityRef, sent executor.Instant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if of.number != w.activity.number || w.left == nil {
		w.lease.Renew(sent)
		return
	}
	if len(w.acked) > 0 && sent <= w.acked[len(w.acked)-1] { // an answer was overtaken
		return
	}
	w.acked.add(sent, of.heartbeat)
	w.follow()
}

// follow makes the lease that of the time-out in use, counted from the newest acknowledged heartbeat. mu is held.
func (w *attendance) follow() {
	base := w.activity.heartbeat
	stop, kill := leaseEnds(w.inUse, base, w.acked.surely(base))
	w.lease.Replace(w.acked[len(w.acked)-1], stop, kill)
}

// use makes the lease follow a changed time-out of an activity, if that activity waits for the attempt and the server has
// acknowledged a heartbeat from it.
func (w *attendance) use(of activityRef, timeout time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if of.number != w.activity.number || w.left == nil || len(w.acked) == 0 {
		return
	}
	w.file.update(func(k *recoveryState) { k.Lease = timeout })
	w.inUse = timeout
	w.follow()
}

// resume continues the lease of an attempt that an earlier worker has left with a time-out in use. Its newest heartbeat, before
// the one sent now, was sent at beatAt.
func (w *attendance) resume(timeout time.Duration, beatAt, sent executor.Instant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inUse, w.acked = timeout, acknowledged{beatAt}
	w.acked.add(max(sent, beatAt), w.activity.heartbeat)
	w.follow()
}

// aloneEnd returns when nothing of an attempt may be left, counted from when its activity left it, if its run waits for a time. The
// difference is for a clock that is slow, and for ending the attempt.
func aloneEnd(alone time.Duration) time.Duration { return alone * 8 / 10 }

// detach makes the waiting activity leave the attempt, for which its run then waits for a while, and longer than its lease. It
// returns false if the attempt has ended or is about to.
func (w *attendance) detach(alone time.Duration, ending func() error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ending() != nil || w.isOver() {
		return false
	}
	if w.left != nil {
		close(w.left)
		alone = max(alone, w.activity.heartbeat, w.lease.Length()*10/8)
		w.left, w.leftAt, w.alone = nil, executor.Now(), alone
		w.file.update(func(k *recoveryState) { k.AloneUntil = time.Now().Add(aloneEnd(alone)) })
		w.beatNow()
	}
	return true
}

// beginUnattended makes an attempt one that its activity has left, and that may continue for a while. It returns when
// that time began.
func (w *attendance) beginUnattended(alone time.Duration) executor.Instant {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.left, w.released = nil, true
	w.leftAt, w.alone = executor.Now(), alone
	return w.leftAt
}

// sender returns the newest activity for heartbeats. released is set once the server has its answer.
func (w *attendance) sender() (of activityRef, released bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.activity, w.released
}

// detachedLease returns how long the run waits for the attempt without an activity, from when the newest one left it.
func (w *attendance) detachedLease() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.alone
}

// isUnattended reports whether no activity waits for the attempt.
func (w *attendance) isUnattended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.left == nil
}

// gone handles a heartbeat of an activity that the server does not know any more. number is that of the activity. It
// returns the error for the caller of beat.
func (w *attendance) gone(number int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case number != w.activity.number:
		return errReattached
	case w.left != nil && w.isLasting():
		w.leaveUnattended()
		return errDetached
	case w.left != nil:
		return heartbeat.ErrGone
	}
	// The server does not know the activity because it has the answer. If the heartbeat time-out had passed instead, the
	// lease would be over, too, and could not be renewed.
	w.released = true
	w.lease.RenewUntil(w.leftAt.Add(aloneEnd(w.alone)))
	return errDetached
}

// leaveUnattended lets a lasting attempt continue without its activity, which the server does not know any more. mu is
// held.
func (w *attendance) leaveUnattended() {
	close(w.left)
	w.left, w.released, w.leftAt = nil, true, executor.Now()
	select {
	case w.unattended <- struct{}{}:
	default:
	}
}

// end gives the attempt its answer. It reports whether no activity waits for the answer, and until when another activity
// may fetch it.
func (w *attendance) end(res *historyv1.ExecuteResponse, err error) (unattended bool, until executor.Instant) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.res, w.err = res, err
	close(w.done)
	return w.left == nil, w.leftAt.Add(w.alone)
}

// isOver reports whether the attempt has its answer.
func (w *attendance) isOver() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// createFile creates the recovery file. complete adds what attendance does not know.
func (w *attendance) createFile(path string, complete func(k *recoveryState)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.file.create(path, func(k *recoveryState) {
		k.attend(w.activity)
		if w.inUse > w.activity.heartbeat {
			k.Lease = w.inUse
		}
		if w.left == nil && k.AloneUntil.IsZero() { // the attempt was detached while it waited
			k.AloneUntil = time.Now().Add(aloneEnd(w.alone))
		}
		complete(k)
	})
}
