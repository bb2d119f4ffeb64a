package run

import (
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/options"
)

// executionID returns the Temporal run ID of this execution.
func (r *run) executionID() string { return workflow.GetInfo(r.root).WorkflowExecution.RunID }

// isChild reports whether this is a child run or a partition, whose result goes into the history of its parent run.
func (r *run) isChild() bool { return r.in.GetParentRun() != "" || r.in.GetPartition() != nil }

// config returns what the pure parts know of the run.
func (r *run) config() flight.Config {
	return flight.Config{
		Input: r.in, RunID: r.id, Chain: r.chain, Home: r.home(), Self: r.self, First: r.first, Original: r.original, Execution: r.executionID(),
		Limits: r.limits, HeartbeatTimeout: options.HeartbeatTimeout,
	}
}

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
