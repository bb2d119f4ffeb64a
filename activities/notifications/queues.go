package notifications

import (
	"context"
	"sync"
)

// queues bounds the deliveries in progress to each target. The zero value is ready for use.
type queues struct {
	mu     sync.Mutex
	places map[string]chan struct{} // by target; as many as there are names of targets
}

// enter waits for a place at a target. The returned function frees the place.
func (q *queues) enter(ctx context.Context, target string) (leave func(), err error) {
	q.mu.Lock()
	places := q.places[target]
	if places == nil {
		if q.places == nil {
			q.places = map[string]chan struct{}{}
		}
		places = make(chan struct{}, sendsAtOnce)
		q.places[target] = places
	}
	q.mu.Unlock()
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
