package workflows

import (
	"fmt"
	"strings"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/names"
)

// maxCarryBytes is the largest input of the next execution that has the state in
// it; with more of it, the state goes through the store. As JSON it takes about
// twice as much, and Temporal carries 2 MB.
const maxCarryBytes = 512 << 10

// mustContinueAsNew says that the history has grown so long that the run must go
// on in a fresh one. From then on nothing is started until what runs has ended.
func (r *run) mustContinueAsNew() bool {
	if !r.draining {
		info := workflow.GetInfo(r.root)
		r.draining = info.GetCurrentHistoryLength() > r.limits.HistoryEvents || info.GetCurrentHistorySize() > r.limits.HistoryBytes
	}
	return r.draining
}

// continueAsNew leaves the state of the run to a fresh execution. Nothing runs
// then and nothing has happened that the core does not know; back-offs begin
// anew, and requests that wait for a node are made again by the next execution.
// It returns nil when something has happened after all.
func (r *run) continueAsNew() error {
	r.flushEvents()
	if r.gather(); len(r.events) > 0 {
		return nil
	}
	carry := r.board.carry(r.core)
	carry.Cancelled = r.core.Cancelled()
	carry.EventParts = r.log.parts
	if first := r.core.FirstFailure(); first >= 0 {
		carry.FirstFailure = r.graph.Name(first)
	}
	if proto.Size(carry)+proto.Size(r.in.GetDefinition())+proto.Size(r.in.GetInput()) > maxCarryBytes {
		ctx := workflow.WithLocalActivityOptions(r.ctx, stateOptions("save the state"))
		var stored v1.RunCarry
		err := workflow.ExecuteLocalActivity(ctx, names.SaveCarryActivity, r.id, r.in.GetGeneration(), carry).Get(ctx, &stored)
		if err != nil {
			return fmt.Errorf("save the state of the run: %w", err)
		}
		if r.gather(); len(r.events) > 0 {
			return nil
		}
		carry = &stored
	}
	r.awaitHandlers()
	return workflow.NewContinueAsNewError(r.root, names.RunWorkflow, &v1.RunInput{
		Definition: r.in.GetDefinition(),
		Input:      r.in.GetInput(),
		References: r.in.GetReferences(),
		Options:    r.in.GetOptions(),
		Generation: r.in.GetGeneration(),
		Carry:      carry,
	})
}

// restore goes on from the state that the execution before has left.
func (r *run) restore(carry *v1.RunCarry) error {
	parts := []*v1.RunCarry{carry}
	for _, key := range carry.GetStored() {
		ctx := workflow.WithLocalActivityOptions(r.ctx, stateOptions("load the state"))
		var part v1.RunCarry
		if err := workflow.ExecuteLocalActivity(ctx, names.LoadCarryActivity, &v1.LoadCarryRequest{Key: key}).Get(ctx, &part); err != nil {
			return fmt.Errorf("load the state of the run: %w", err)
		}
		parts = append(parts, &part)
	}
	board := newBoard(r.id, r.in, r.graph, carry.GetCreatedAt().AsTime())
	board.revision = max(board.revision, carry.GetRevision())
	board.log.parts = carry.GetEventParts()
	records := make([]dag.Record, r.graph.Len())
	for i := range records {
		for _, part := range parts {
			if t := part.GetTasks()[r.graph.Name(i)]; t != nil {
				records[i] = board.restore(i, t)
			}
		}
		board.touch(i) // who watched the execution before sees all of it again
	}
	for _, part := range parts {
		if part.GetContext() != nil {
			r.context = cloneStruct(part.GetContext())
		}
	}
	board.setContext(r.context)
	first := -1
	if i, ok := r.graph.Index(carry.GetFirstFailure()); ok {
		first = i
	}
	put, err := r.putBack()
	if err != nil {
		return err
	}
	core, err := dag.Reopen(r.graph, records, put, dag.WithCancelled(carry.GetCancelled()), dag.WithFirstFailure(first))
	if err != nil {
		return fmt.Errorf("put back %s: %w", strings.Join(r.in.GetRetry(), ", "), err)
	}
	r.cancelled = carry.GetCancelled()
	r.core, r.board = core, board
	return nil
}

// carry is the board and the core as the next execution needs them.
func (b *board) carry(core *dag.State) *v1.RunCarry {
	c := &v1.RunCarry{
		CreatedAt: b.run.CreatedAt,
		Context:   b.run.Context,
		Revision:  b.revision,
		Tasks:     map[string]*v1.TaskCarry{},
	}
	for i := range b.entries {
		e, rec := &b.entries[i], core.Task(i)
		if rec.State == dag.StatePending {
			continue
		}
		t := &v1.TaskCarry{Task: proto.CloneOf(e.task), Claim: rec.Claim, Record: e.record, Backoff: rec.Backoff}
		t.Task.State, t.Task.Reason, t.Task.Error = rec.State, rec.Reason, rec.Error
		t.Task.Type, t.Task.DependsOn = "", nil // the definition has them
		if e.record != "" {
			t.Task.Result.Stdout, t.Task.Result.Stderr, t.Task.Result.Output = "", "", nil
			t.Task.Result.StdoutTruncated, t.Task.Result.StderrTruncated = true, true
		}
		t.Retried, t.Unheard, t.AvoidNode, t.Refusals = rec.Retried, e.unheard, e.avoid, e.refusals
		if !e.queuedAt.IsZero() {
			t.QueuedAt = timestamppb.New(e.queuedAt)
		}
		if f := rec.Failure; f.State != "" {
			t.Failure = &v1.Task{State: f.State, Reason: f.Reason, Error: f.Error}
		}
		c.Tasks[b.graph.Name(i)] = t
	}
	return c
}

// restore puts task i back on the board and returns its record.
func (b *board) restore(i int, t *v1.TaskCarry) dag.Record {
	e := &b.entries[i]
	task := proto.CloneOf(t.GetTask())
	task.Type, task.DependsOn = e.task.Type, e.task.DependsOn
	e.task, e.claim, e.record = task, t.GetClaim(), t.GetRecord()
	e.unheard, e.avoid, e.refusals = t.GetUnheard(), t.GetAvoidNode(), t.GetRefusals()
	if t.QueuedAt != nil {
		e.queuedAt = t.GetQueuedAt().AsTime()
	}
	f := t.GetFailure()
	return dag.Record{
		State: task.GetState(), Reason: task.GetReason(), Error: task.GetError(), Node: task.GetNode(),
		Attempt: task.GetAttempt(), Claim: t.GetClaim(), ExitCode: task.GetResult().GetExitCode(),
		Backoff: t.GetBackoff(), Retried: t.GetRetried(),
		Failure: dag.Failure{State: f.GetState(), Reason: f.GetReason(), Error: f.GetError()},
	}
}
