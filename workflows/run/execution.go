package run

import (
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/fanout"
	"switchyard/workflows/core/flight"
)

// executionID returns the Temporal run ID of this execution.
func (r *run) executionID() string { return workflow.GetInfo(r.root).WorkflowExecution.RunID }

// isChild reports whether this is a child run or a partition, whose result goes into the history of its parent run.
func (r *run) isChild() bool { return r.in.GetParentRun() != "" || r.in.GetPartition() != nil }

// fanOutConfig returns what the large fan-outs know of the run.
func (r *run) fanOutConfig() fanout.Config {
	return fanout.Config{Input: r.in, Run: r.id, Chain: r.chain, Limits: r.limits}
}

// updateContext adds a task's update to the context of the run. The effect that asked for it gets the answer; in a partition, when
// the run has answered.
func (r *run) updateContext(update *structpb.Struct, asked flight.Effect) {
	number, effects := r.fanOuts.Update(update, r.now())
	r.settling[number] = asked
	r.spread(effects)
}

// cacheScope returns the owner of the cached results that the run reads and writes. Each user has a separate scope: otherwise
// anyone who may submit a definition could read the results of other users' tasks, or replace them.
func (r *run) cacheScope() string {
	role := v1.ParseRole(r.in.GetByRole())
	if r.in.GetPartition() != nil || role == v1.Role_ROLE_UNSPECIFIED || role.Includes(v1.Role_ROLE_OPERATOR) {
		return r.in.GetCacheScope()
	}
	return r.commands.SubmittedBy
}

// item returns the foreach item of instance i, or the key of the stored list that holds the item. It returns neither if the
// task has no foreach.
func (r *run) item(i int) (item *structpb.Value, stored string) {
	items, number := r.records.ItemsOf(r.core.Group(i), r.core.Definition(i)), r.core.Number(i)
	if values := items.GetList().GetValues(); items.GetKey() == "" && number < len(values) {
		return values[number], ""
	}
	return nil, items.GetKey()
}

// instanceCount returns how many instances a task has, in all its partitions. ok is false if it has not fanned out.
func (r *run) instanceCount(task int) (n int, ok bool) {
	_, n, _, ok = r.core.Expansion(task)
	if part := r.in.GetPartition(); ok && part != nil {
		return int(part.GetCount()), true
	}
	return n, ok || r.core.Task(task).State == v1.TaskCompleted && r.graph.FansOut(task) // it may have fanned out over nothing
}

// isQueued reports whether a task still waits with a claim to start.
func (r *run) isQueued(i int, claim int32) bool {
	rec := r.core.Task(i)
	return rec.State == v1.TaskQueued && rec.Claim == claim
}

// inlineLimit returns the most bytes of streams and output that the answer to a request may hold.
func (r *run) inlineLimit() int32 {
	return int32(min(maxInlineResult, maxInlineTotal/r.core.Len()))
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
