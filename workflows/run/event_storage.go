package run

import (
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// maxUnstoredFactor is how many times Limits.UnstoredEvents are kept while the store takes none. Then the run waits for
// the store.
const maxUnstoredFactor = 4

// unstoredEvents returns the next slice of the events to store.
func (r *run) unstoredEvents() *v1.SaveEventsRequest {
	req := r.log.Unstored(r.self, r.in.GetGeneration())
	req.Chain = r.selfChain
	return req
}

// saveEvents stores the events when there are many. Until there are too many to keep, the
// run does not wait for a store that takes none: it tries again after some more.
func (r *run) saveEvents() {
	n, limit := r.log.Len(), r.limits.UnstoredEvents
	switch {
	case n <= limit:
	case n > maxUnstoredFactor*limit:
		_ = r.flushEvents() // a cancellation comes first
	case n > r.log.RetryAt:
		if r.try("save events", names.SaveEventsActivity, nil, r.unstoredEvents()) == nil {
			r.log.DropStored(n)
		} else {
			r.log.RetryAt = n + limit/4
		}
	}
}

// flushEvents stores the events that are not stored yet. The error is that of mustNow.
func (r *run) flushEvents() error {
	n := r.log.Len()
	if n == 0 {
		return nil
	}
	err := r.mustNow("save its events", names.SaveEventsActivity, nil, r.unstoredEvents())
	if err == nil {
		r.log.DropStored(n)
	}
	return err
}
