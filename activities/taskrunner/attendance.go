package taskrunner

import (
	"sync"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/heartbeat"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// attendance is which activity waits for an attempt, and the answer that it waits for. mu protects the fields below it.
// The lock of the recovery file may be taken while mu is held.
type attendance struct {
	file    *recoveryFile
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
	// token is the token of the newest activity that waits, or has waited, for the attempt. attended counts those
	// activities. left is closed when the newest is to leave the attempt, and is nil once it has.
	token    []byte
	attended int
	left     chan struct{}
	// leftAt is when the activity left, and alone how long the attempt may then continue. released is set once the server
	// has the activity's answer.
	leftAt   executor.Instant
	alone    time.Duration
	released bool
}

// newAttendance returns the attendance of an attempt that the activity with a token has brought.
func newAttendance(token []byte, file *recoveryFile, beatNow func(), isLasting func() bool) *attendance {
	left := make(chan struct{})
	return &attendance{
		file: file, beatNow: beatNow, isLasting: isLasting, first: left, done: make(chan struct{}), fetched: make(chan struct{}),
		unattended: make(chan struct{}, 1), token: token, attended: 1, left: left,
	}
}

// reattach makes an activity the one that waits for the attempt. The returned channel is closed when that activity is to
// leave.
func (w *attendance) reattach(token []byte) <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left != nil {
		close(w.left)
	}
	left := make(chan struct{})
	w.beatNow() // report to the server at once that the attempt runs
	w.attended++
	w.token, w.left, w.released = token, left, false
	w.file.update(func(k *recoveryState) { k.Token, k.AloneUntil = token, time.Time{} })
	return left
}

// detach makes the waiting activity leave the attempt, which may then continue for a while. It returns false if the
// attempt has ended or is about to.
func (w *attendance) detach(alone time.Duration, ending func() error) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ending() != nil || w.isOver() {
		return false
	}
	if w.left != nil {
		close(w.left)
		w.left, w.leftAt, w.alone = nil, executor.Now(), alone
		w.file.update(func(k *recoveryState) { k.AloneUntil = time.Now().Add(alone) })
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

// sender returns the newest activity for heartbeats.
func (w *attendance) sender() (token []byte, number int, released bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.token, w.attended, w.released
}

// isUnattended reports whether no activity waits for the attempt.
func (w *attendance) isUnattended() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.left == nil
}

// gone handles a heartbeat of an activity that the server does not know any more. number is that of the activity. It
// returns the error for the caller of beat.
func (w *attendance) gone(number int, renew func(until executor.Instant)) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case number != w.attended:
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
	renew(w.leftAt.Add(w.alone))
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

// createFile creates the recovery file with a state, to which it adds the activity.
func (w *attendance) createFile(path string, state recoveryState) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	state.Token = w.token
	if w.left == nil { // the attempt was detached while it waited
		state.AloneUntil = time.Now().Add(w.alone)
	}
	return w.file.create(path, state)
}
