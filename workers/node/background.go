package node

import (
	"context"
	"errors"
	"sync"
	"time"
)

// background keeps the newest figures of a reading that takes its time, or may
// hang: a heartbeat must wait for neither. At most one reading is under way,
// also when one never ends. Its methods may be called from several goroutines
// at once.
type background[T any] struct {
	// read takes the figures until ctx ends.
	read func(ctx context.Context) (T, error)
	// every is the time between readings; limit the longest that one may take.
	every, limit time.Duration
	now          func() time.Time

	mu      sync.Mutex
	started time.Time
	ended   chan struct{} // closed with the reading under way; nil: none is
	value   T
	count   int64 // readings that have ended
	err     error
}

// latest returns the newest figures, their number, which grows, and why the
// newest reading failed. One that was too slow leaves the figures as they were;
// one that failed otherwise has none. It starts the next reading when it is
// time, and does not wait for it.
func (b *background[T]) latest() (value T, count int64, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.now()
	switch {
	case b.ended == nil && (b.started.IsZero() || now.Sub(b.started) >= b.every):
		b.started, b.ended = now, make(chan struct{})
		go b.run(b.ended)
	case b.ended != nil && now.Sub(b.started) > 2*b.limit:
		return b.value, b.count, context.DeadlineExceeded
	}
	return b.value, b.count, b.err
}

func (b *background[T]) run(ended chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), b.limit)
	defer cancel()
	value, err := b.read(ctx)
	if err != nil && ctx.Err() != nil {
		err = ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !errors.Is(err, context.DeadlineExceeded) {
		b.value = value
	}
	b.err, b.ended = err, nil
	b.count++
	close(ended)
}

// wait waits for the reading that is under way, if there is one.
func (b *background[T]) wait(ctx context.Context) {
	b.mu.Lock()
	ended := b.ended
	b.mu.Unlock()
	if ended == nil {
		return
	}
	select {
	case <-ended:
	case <-ctx.Done():
	}
}
