package run

import (
	"time"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/core/command"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/fanout"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
	"switchyard/workflows/status"
)

// execution is what every component of a run shares: what the run is, its core with the state of all tasks, its status and log,
// and the inbox, in which each component leaves what has happened. Only restore and beginNew replace the core, fanOuts, the records, the status and the log.
type execution struct {
	*inbox
	identity

	// ctx outlives the cancellation of root, so that running attempts can be stopped in order.
	ctx, root workflow.Context
	now       func() time.Time
	limits    limits.Run
	calls     *calls.Calls
	received  *historyv1.RunInput // as received; the next execution gets it unchanged
	in        *historyv1.RunInput
	graph     *dag.Graph
	core      *dag.State // nil until the run has begun, as are fanOuts, records and status
	fanOuts   *fanout.State
	records   *flight.Records
	flight    *flight.State
	status    *status.Status
	log       *eventlog.Log
	draining  bool // nothing is admitted: the run is about to continue as new; only history changes it

	commands *command.State        // what people have asked
	fly      func([]flight.Effect) // carries out what the units in flight need
	spread   func([]fanout.Effect) // carries out what the large fan-outs need

	settles map[int64]func(refusal string) // receive the answers to context updates, by number

	updates, signals int  // received by this execution
	waiting          bool // the run has not begun: it waits for its approval or its run slot
}

// identity holds the IDs of a run and of the workflow that executes it.
type identity struct {
	id        string // ID of the run that the tasks belong to
	self      string // ID of this workflow; differs from id in a partition
	chain     string // chain of the run, under which the tasks store their data
	selfChain string // chain under which this workflow stores its data; "" in a partition, whose ID contains the chain of its run
	first     string // Temporal run ID of the first execution of this workflow
	original  string // Temporal run ID with which this execution was started, before any reset
}

// home returns the key prefix under which this workflow stores its data.
func (d identity) home() string { return names.Home(d.self, d.selfChain) }

// executionID returns the Temporal run ID of this execution.
func (x *execution) executionID() string { return workflow.GetInfo(x.root).WorkflowExecution.RunID }

// isChild reports whether this is a child run or a partition, whose result goes into the history of its parent run.
func (x *execution) isChild() bool { return x.in.GetParentRun() != "" || x.in.GetPartition() != nil }

// fanOutConfig returns what the large fan-outs know of the run.
func (x *execution) fanOutConfig() fanout.Config {
	return fanout.Config{Input: x.in, Run: x.id, Chain: x.chain, Limits: x.limits}
}

// updateContext adds a task's update to the context of the run and calls settle with the reason for a refusal, or "". In a
// partition, settle is called when the run has answered.
func (x *execution) updateContext(update *structpb.Struct, settle func(refusal string)) {
	number, effects := x.fanOuts.Update(update, x.now())
	x.settles[number] = settle
	x.spread(effects)
}

// cacheScope returns the owner of the cached results that the run reads and writes. Each user has a separate scope: otherwise
// anyone who may submit a definition could read the results of other users' tasks, or replace them.
func (x *execution) cacheScope() string {
	role := v1.ParseRole(x.in.GetByRole())
	if x.in.GetPartition() != nil || role == v1.Role_ROLE_UNSPECIFIED || role.Includes(v1.Role_ROLE_OPERATOR) {
		return x.in.GetCacheScope()
	}
	return x.commands.SubmittedBy
}

// item returns the foreach item of instance i, or the key of the stored list that holds the item. It returns neither if the
// task has no foreach.
func (x *execution) item(i int) (item *structpb.Value, stored string) {
	items, number := x.records.ItemsOf(x.core.Group(i), x.core.Definition(i)), x.core.Number(i)
	if values := items.GetList().GetValues(); items.GetKey() == "" && number < len(values) {
		return values[number], ""
	}
	return nil, items.GetKey()
}

// instanceCount returns how many instances a task has, in all its partitions. ok is false if it has not fanned out.
func (x *execution) instanceCount(task int) (n int, ok bool) {
	_, n, _, ok = x.core.Expansion(task)
	if part := x.in.GetPartition(); ok && part != nil {
		return int(part.GetCount()), true
	}
	return n, ok || x.core.Task(task).State == v1.TaskCompleted && x.graph.FansOut(task) // it may have fanned out over nothing
}

// isQueued reports whether a task still waits with a claim to start.
func (x *execution) isQueued(i int, claim int32) bool {
	rec := x.core.Task(i)
	return rec.State == v1.TaskQueued && rec.Claim == claim
}

// inlineLimit returns the most bytes of streams and output that the answer to a request may hold.
func (x *execution) inlineLimit() int32 {
	return int32(min(maxInlineResult, maxInlineTotal/x.core.Len()))
}
