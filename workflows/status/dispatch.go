package status

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/eventlog"
)

// dispatches follows the attempts of tasks: their requests for nodes, their dispatches and how these end.
type dispatches struct {
	*shown
}

// queuedTime returns when the newest attempt of task i requested a placement, or nil if it has not.
func (d *dispatches) queuedTime(i int) *timestamppb.Timestamp {
	if at := d.records.Of(i).QueuedAt; !at.IsZero() {
		return timestamppb.New(at)
	}
	return nil
}

// SetPlace records why the newest claim of task i goes to its node, the facts of that placement, and the number of the first
// instance of its batch, or -1 if it is in no batch.
func (d *dispatches) SetPlace(i int, why string, lead int, there ...eventlog.Fact) {
	d.entries[i].why, d.entries[i].lead, d.entries[i].place = why, int32(lead), there
}

// SetRetryTime shows when task i is retried.
func (d *dispatches) SetRetryTime(i int, at time.Time, now time.Time) {
	e := &d.entries[i]
	if e.scheduledAfter == nil { // otherwise a previous execution has logged it
		until := at.UTC().Format(time.RFC3339Nano)
		d.Log.Add(now, v1.EventRetried, i, "", e.attempt, e.claim, "waits until "+until, eventlog.KeyUntil.Of(until))
	}
	d.change(i, func(e *entry) { e.scheduledAfter = timestamppb.New(at) })
}

// SetStartedAt records when the running attempt of task i started.
func (d *dispatches) SetStartedAt(i int, at *timestamppb.Timestamp) { d.entries[i].startedAt = at }
