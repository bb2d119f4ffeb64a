package lifecycle

import (
	"context"
	"sync"
	"time"

	"switchyard/activities/executor"
)

// Lifecycle holds the state of an attempt and its restart in progress. The zero value is that of a running attempt. Its methods
// are safe for concurrent use.
type Lifecycle struct {
	mu    sync.Mutex
	state State
	// restart is the restart in progress, or nil. restarts counts the restarts begun. restartError is the error of the last one.
	restart      *Restart
	restarts     int
	restartError error
}

// State returns the current state.
func (l *Lifecycle) State() State {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state
}

// SetPaused records whether the attempt is paused.
func (l *Lifecycle) SetPaused(paused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state.Paused = paused
}

// BeginSteer begins to pause or resume the attempt, which may be paused from now on if mayPause is set. SetPaused ends that.
func (l *Lifecycle) BeginSteer(mayPause bool) (err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state, err = l.state.steer(mayPause)
	return err
}

// BeginCapture begins to capture the attempt, and reports whether it may be paused already.
func (l *Lifecycle) BeginCapture() (paused bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	paused = l.state.Paused
	l.state, err = l.state.capture()
	return paused, err
}

// EndCapture ends the capture.
func (l *Lifecycle) EndCapture(paused bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = l.state.captured(paused)
}

// BeginStop begins to stop the attempt, unless it is over. It returns whether the attempt may be paused, and the restart in
// progress or nil.
func (l *Lifecycle) BeginStop() (paused bool, under *Restart, ok bool) { return l.stop(Stopping) }

// Leave begins to leave the attempt to a later worker, unless it is over. It returns the restart in progress or nil.
func (l *Lifecycle) Leave() (under *Restart, ok bool) {
	_, under, ok = l.stop(Leaving)
	return under, ok
}

func (l *Lifecycle) stop(to Phase) (paused bool, under *Restart, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state = l.state.stop(to)
	return l.state.Paused, l.restart, !l.state.IsOver()
}

// End ends the attempt. It returns the error of a last restart that explains the end, or nil. It returns false, and does nothing,
// for an end with which a restart has begun, because more than begun restarts have, unless the wait for the end was abandoned.
func (l *Lifecycle) End(begun int, abandoned bool) (restartError error, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.restarts != begun && !abandoned {
		return nil, false
	}
	if !l.state.IsStopped() {
		restartError = l.restartError
	}
	l.state = l.state.end()
	return restartError, true
}

// Restart is a restart in progress.
type Restart struct {
	cancel context.CancelFunc
	// done is closed when the restart has ended; err is then its error.
	done chan struct{}
	err  error
}

// Await waits for the end of a restart and returns its error, or the cause of ctx if that ends first.
func (r *Restart) Await(ctx context.Context) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Finish waits for the end of a restart, and cancels it after patience.
func (r *Restart) Finish(patience time.Duration) {
	select {
	case <-r.done:
	case <-time.After(patience):
		r.cancel()
		<-r.done
	}
}

// BeginRestart calls do in a goroutine of calls to restart the attempt, or returns the restart in progress. refusal is why the
// attempt cannot be restarted, or nil. The context of do is ctx until the restart is cancelled.
func (l *Lifecycle) BeginRestart(ctx context.Context, calls *sync.WaitGroup, refusal error, do func(context.Context) error) (*Restart, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	next, err := l.state.restart()
	switch {
	case err != nil:
		return nil, err
	case l.restart != nil:
		return l.restart, nil
	case refusal != nil:
		return nil, refusal
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &Restart{cancel: cancel, done: make(chan struct{})}
	l.state, l.restart = next, r
	l.restarts++
	calls.Go(func() {
		defer cancel()
		r.err = l.endRestart(do(ctx))
		close(r.done)
	})
	return r, nil
}

// endRestart ends a restart. It returns what to report of its error.
func (l *Lifecycle) endRestart(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.state, l.restart, l.restartError = l.state.restarted(err != nil), nil, err
	if err != nil && l.state.IsEnding() {
		return executor.ErrNotRunning
	}
	return err
}

// AwaitRestart waits for the end of a restart in progress, and returns how many restarts have begun.
func (l *Lifecycle) AwaitRestart(ctx context.Context) int {
	for {
		l.mu.Lock()
		under, begun := l.restart, l.restarts
		l.mu.Unlock()
		if under == nil || ctx.Err() != nil {
			return begun
		}
		select {
		case <-under.done:
		case <-ctx.Done():
		}
	}
}
