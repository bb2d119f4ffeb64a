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
	// BusyFanOuts is the number of tasks with instances in flight.
	BusyFanOuts int
	// suspicionLimit is how many suspicions in a row it takes until a task avoids the last node.
	suspicionLimit int32
}

// SetQueued records when task i began to wait for a node. A claim that is placed again keeps its time.
func (d *dispatches) SetQueued(i int, now time.Time) {
	if e := &d.entries[i]; e.queuedAt == 0 {
		e.queuedAt = now.UnixNano()
	}
}

// QueuedAt returns when the newest attempt of task i requested a placement. It is valid only after SetQueued.
func (d *dispatches) QueuedAt(i int) time.Time { return time.Unix(0, d.entries[i].queuedAt) }

// queuedTime returns when the newest attempt of task i requested a placement, or nil if it has not.
func (d *dispatches) queuedTime(i int) *timestamppb.Timestamp {
	if d.entries[i].queuedAt == 0 {
		return nil
	}
	return timestamppb.New(d.QueuedAt(i))
}

// SetPlace records why the newest claim of task i goes to its node, the facts of that placement, and the number of the first
// instance of its batch, or -1 if it is in no batch.
func (d *dispatches) SetPlace(i int, why string, lead int, there ...eventlog.Fact) {
	d.entries[i].why, d.entries[i].lead, d.entries[i].place = why, int32(lead), there
}

// SetRetryTime shows when task i is retried.
func (d *dispatches) SetRetryTime(i int, at time.Time, now time.Time) {
	e := &d.entries[i]
	e.queuedAt = 0
	if e.scheduledAfter == nil { // otherwise a previous execution has logged it
		until := at.UTC().Format(time.RFC3339Nano)
		d.Log.Add(now, v1.EventRetried, i, "", e.attempt, e.claim, "waits until "+until, eventlog.KeyUntil.Of(until))
	}
	d.change(i, func(e *entry) { e.scheduledAfter = timestamppb.New(at) })
}

// AssignedAt returns when the newest dispatch of task i was given a node, or nil if none was.
func (d *dispatches) AssignedAt(i int) *timestamppb.Timestamp { return d.entries[i].assignedAt }

// SetStartedAt records when the running attempt of task i started.
func (d *dispatches) SetStartedAt(i int, at *timestamppb.Timestamp) { d.entries[i].startedAt = at }

// StartedAt returns when the running attempt of task i started, or nil if unknown.
func (d *dispatches) StartedAt(i int) *timestamppb.Timestamp { return d.entries[i].startedAt }

// AvoidedNode returns the node on which the newest dispatch of task i failed, or which handed it back, or "" if there is none.
func (d *dispatches) AvoidedNode(i int) string { return d.entries[i].avoid }

// Refusals returns the number of consecutive refusals of task i by nodes without room.
func (d *dispatches) Refusals(i int) int32 { return d.entries[i].refusals }

// LostLeases returns how many leases task i's attempts have lost on live nodes since one of them ended in another way.
func (d *dispatches) LostLeases(i int) int32 { return d.entries[i].lostLeases }

// Unacknowledged returns the numbers of the attempts of task i whose end is unknown.
func (d *dispatches) Unacknowledged(i int) []int32 { return d.entries[i].unacknowledged }

// Requeues returns how often task i was requeued after its end. Only tasks that run outside the nodes are counted.
func (d *dispatches) Requeues(i int) int32 {
	if m := d.entries[i].extras; m != nil {
		return m.requeues
	}
	return 0
}

// Continues reports whether an earlier dispatch started the newest attempt of task i, which runs outside the nodes.
func (d *dispatches) Continues(i int) bool {
	m := d.entries[i].extras
	return m != nil && m.continues
}

// Checkpoint returns what the newest attempt of task i left for the next one, or nil if it left nothing.
func (d *dispatches) Checkpoint(i int) *v1.Checkpoint { return d.entries[i].checkpoint }
