package run

import (
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
)

// maxUnstoredFactor times Limits.UnstoredEvents is how many events the run keeps while the store is unavailable. Past that, the
// run waits for the store.
const maxUnstoredFactor = 4

// unstoredEvents returns the request that stores the next slice of events.
func (v *view) unstoredEvents() *historyv1.SaveEventsRequest {
	req := v.log.Unstored(v.self, v.in.GetGeneration())
	req.Chain = v.selfChain
	return req
}

// saveEvents stores the events once there are many. While the number of events is bearable, the run does not wait for an
// unavailable store: it tries again after some more events.
func (v *view) saveEvents() {
	n, limit := v.log.Len(), v.limits.UnstoredEvents
	switch {
	case n <= limit:
	case n > maxUnstoredFactor*limit:
		_ = v.flushEvents() // a cancellation is handled first
	case n > v.log.RetryAt:
		if v.store.try("save events", names.SaveEventsActivity, nil, v.unstoredEvents()) == nil {
			v.log.DropStored(n)
		} else {
			v.log.RetryAt = n + limit/4
		}
	}
}

// flushEvents stores all events that are not stored yet. Errors are those of mustNow.
func (v *view) flushEvents() error {
	n := v.log.Len()
	if n == 0 {
		return nil
	}
	err := v.store.mustNow("save its events", names.SaveEventsActivity, nil, v.unstoredEvents())
	if err == nil {
		v.log.DropStored(n)
	}
	return err
}
