package run

import (
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
)

// maxUnstoredFactor times Limits.UnstoredEvents is how many events the run keeps while the store is unavailable. Past that, the
// run waits for the store.
const maxUnstoredFactor = 4

// eventID returns the ID of an event of this workflow, by its number.
func (r *run) eventID(number int64) string {
	part := r.Input.GetPartition()
	if part == nil {
		return names.EventID(r.Input.GetGeneration(), "", number)
	}
	return names.EventID(part.GetGeneration(), names.InstanceName(part.GetTask(), int(part.GetFrom())), number)
}

// unstoredEvents returns the request that stores the next slice of events.
func (r *run) unstoredEvents() *historyv1.SaveEventsRequest {
	req := r.log.Unstored(r.Self, r.Input.GetGeneration())
	req.Chain = r.selfChain
	return req
}

// saveEvents stores the events once there are many. While the number of events is bearable, the run does not wait for an
// unavailable store: it tries again after some more events.
func (r *run) saveEvents() {
	n, limit := r.log.Len(), r.Limits.UnstoredEvents
	switch {
	case n <= limit:
	case n > maxUnstoredFactor*limit:
		_ = r.flushEvents() // a cancellation is handled first
	case n > r.log.RetryAt:
		if r.calls.Try("save events", names.SaveEventsActivity, nil, r.unstoredEvents()) == nil {
			r.log.DropStored(n)
		} else {
			r.log.RetryAt = n + limit/4
		}
	}
}

// flushEvents stores all events that are not stored yet. Errors are those of calls.MustNow.
func (r *run) flushEvents() error {
	n := r.log.Len()
	if n == 0 {
		return nil
	}
	err := r.calls.MustNow("save its events", names.SaveEventsActivity, nil, r.unstoredEvents())
	if err == nil {
		r.log.DropStored(n)
	}
	return err
}
