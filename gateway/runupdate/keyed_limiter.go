package runupdate

import (
	"context"
	"sync"
)

// runUpdates is how many updates of a run the gateway has in flight. Temporal accepts 10 and refuses the
// rest, and every layer on the way retries a refused update: a few dozen concurrent callers would keep a
// small machine from answering any of them.
const runUpdates = 8

// keyedLimiter limits the number of concurrent callers per key.
type keyedLimiter struct {
	mu   sync.Mutex
	open map[string]*limiterKey
}

// limiterKey is the semaphore of one key. It exists while a caller uses it.
type limiterKey struct {
	taken chan struct{} // one element per caller that holds a slot
	users int
}

// acquire waits for a slot of the key and returns the function that releases it. The only error is that of the
// context.
func (l *keyedLimiter) acquire(ctx context.Context, id string) (giveBack func(), err error) {
	l.mu.Lock()
	if l.open == nil {
		l.open = map[string]*limiterKey{}
	}
	way := l.open[id]
	if way == nil {
		way = &limiterKey{taken: make(chan struct{}, runUpdates)}
		l.open[id] = way
	}
	way.users++
	l.mu.Unlock()
	leave := func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if way.users--; way.users == 0 {
			delete(l.open, id)
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
