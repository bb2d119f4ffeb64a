package node

import (
	"context"
	"errors"
	"sync"
	"time"
)

// background keeps the latest result of a reading that is slow or may hang, because a heartbeat
// must not wait for it. At most one reading is in progress, even if one never ends. background is
// safe for concurrent use.
type background[T any] struct {
	// read reads the figures. It should return when ctx ends.
	read func(ctx context.Context) (T, error)
	// every is the interval of readings, limit the maximum duration of one.
	every, limit time.Duration
	now          func() time.Time

	mu      sync.Mutex
	started time.Time
	ended   chan struct{} // closed after the reading in progress; nil if there is none
	value   T
	count   int64 // number of completed readings
	err     error
}

// latest returns the latest figures, the number of completed readings, and why the latest reading
// failed. A reading that timed out leaves the figures unchanged; one that failed for another reason
// clears them. latest starts the next reading when it is due, and does not wait for it.
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

// wait waits for the reading in progress, if there is one.
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
