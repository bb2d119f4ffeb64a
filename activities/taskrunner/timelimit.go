package taskrunner

import (
	"context"
	"sync"
	"time"
)

// timeLimit ends a context when its time has passed. The time does not run while the limit is suspended. Methods of a nil
// timeLimit do nothing. They may be called from several goroutines at once.
type timeLimit struct {
	mu    sync.Mutex
	left  time.Duration
	since time.Time   // when left started to run, or zero while suspended
	timer *time.Timer // ends the context
}

// withTimeLimit returns a context that ends with errTimeout when the limit has passed since from. A zero from means now;
// a limit of 0 means no limit. The caller must call cancel.
func withTimeLimit(ctx context.Context, limit time.Duration, from time.Time) (_ context.Context, _ *timeLimit, cancel func()) {
	ctx, stop := context.WithCancelCause(ctx)
	if limit <= 0 {
		return ctx, nil, func() { stop(nil) }
	}
	if !from.IsZero() {
		limit = max(limit-time.Since(from), 0)
	}
	l := &timeLimit{left: limit, since: time.Now(), timer: time.AfterFunc(limit, func() { stop(errTimeout) })}
	return ctx, l, func() {
		l.timer.Stop()
		stop(nil)
	}
}

// suspend stops the clock. An expired limit stays expired.
func (l *timeLimit) suspend() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.since.IsZero() && l.timer.Stop() {
		l.left -= time.Since(l.since)
		l.since = time.Time{}
	}
}

// resume restarts the clock.
func (l *timeLimit) resume() {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.since.IsZero() {
		l.since = time.Now()
		l.timer.Reset(max(l.left, 0))
	}
}
