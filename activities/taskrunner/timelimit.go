package taskrunner

import (
	"context"
	"sync"
	"time"
)

// timeLimit ends a context when its time is over, which stands still while it is
// suspended. A nil one never does. Its methods may be called from several goroutines
// at once.
type timeLimit struct {
	mu    sync.Mutex
	left  time.Duration
	since time.Time   // since when left runs; zero: it stands still
	timer *time.Timer // ends the context
}

// withTimeLimit returns a context that ends with errTimeout when its time is over, which
// counts from a moment, the zero one being now; 0: it has no limit. cancel must be called.
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

// suspend has the time stand still. A time that is over stays over.
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

// resume lets the time run on.
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
