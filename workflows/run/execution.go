package run

import (
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
)

// isChild reports whether this is a child run or a partition, whose result goes into the history of its parent run.
func (r *run) isChild() bool { return r.Input.GetParentRun() != "" || r.Input.GetPartition() != nil }

// updateContext adds a task's update to the context of the run. The effect that asked for it gets the answer; in a partition, when
// the run has answered.
func (r *run) updateContext(update *structpb.Struct, asked flight.Effect) {
	number, effects := r.fanOuts.Update(update, r.now())
	r.settling[number] = asked
	r.spread(effects)
}

// raise adds events for the core.
func (r *run) raise(events ...dag.Event) { r.events = append(r.events, events...) }

// wake starts another round of the loop even without an event.
func (r *run) wake() { r.woken = true }

// beginRound marks the start of a round, which handles whatever the run was woken for.
func (r *run) beginRound() { r.woken = false }

// hasEvents reports whether there are events for the core.
func (r *run) hasEvents() bool { return len(r.events) > 0 }

// isEmpty reports whether nothing has happened that another round would handle.
func (r *run) isEmpty() bool { return !r.woken && !r.hasEvents() }

// takeEvents removes the events and returns them.
func (r *run) takeEvents() []dag.Event {
	events := r.events
	r.events = nil
	return events
}
