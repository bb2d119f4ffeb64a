package gateway

import (
	"context"
	"sync"
)

// runUpdates is how many updates of a run the gateway has in flight. Temporal takes 10,
// and what it refuses for that is asked again and again, by every layer on the way: a few
// dozen callers at once would keep a small machine from answering any of them.
const runUpdates = 8

// keyedLimiter lets few callers at once have to do with each of many things.
type keyedLimiter struct {
	mu   sync.Mutex
	open map[string]*limiterKey
}

// limiterKey is the way to one thing, there for as long as a caller holds it.
type limiterKey struct {
	taken chan struct{} // holds one for each that has its turn
	users int
}

// take waits for a turn, and returns how to give it back. The error is that of the context.
func (t *keyedLimiter) take(ctx context.Context, id string) (giveBack func(), err error) {
	t.mu.Lock()
	if t.open == nil {
		t.open = map[string]*limiterKey{}
	}
	way := t.open[id]
	if way == nil {
		way = &limiterKey{taken: make(chan struct{}, runUpdates)}
		t.open[id] = way
	}
	way.users++
	t.mu.Unlock()
	leave := func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if way.users--; way.users == 0 {
			delete(t.open, id)
		}
	}
	select {
	case way.taken <- struct{}{}:
		return func() { <-way.taken; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}
