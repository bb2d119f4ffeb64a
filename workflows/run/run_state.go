package run

import (
	"errors"
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
	"switchyard/workflows/status"
	"switchyard/workflows/structs"
)

// maxStateBytes is the largest input of the next execution that includes the state; a larger state goes through the store. As
// JSON it takes about twice as much.
const maxStateBytes = 128 << 10

// continueAsNew hands the state of a quiet run to a new execution, which restarts back-offs and repeats the requests that wait
// for a node. It returns nil if something has happened that the state does not include.
func (r *run) continueAsNew() error {
	if r.isOvertaken() || r.takeBackRequests() {
		return nil
	}
	if r.flushEvents() != nil || r.isOvertaken() {
		return nil
	}
	next, err := r.nextInput()
	if err != nil {
		return err
	}
	if next == nil || r.isOvertaken() {
		return nil
	}
	runState := r.runState()
	if proto.Size(runState)+proto.Size(next) > maxStateBytes {
		var stored v1.RunState
		err := r.mustNow("save its state", names.SaveStateActivity, &stored,
			r.home(), r.in.GetGeneration(), r.execution(), runState)
		if errors.Is(err, errInterrupted) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("save the state of the run: %w", err)
		}
		if r.isOvertaken() {
			return nil
		}
		runState = &stored
	}
	// The code below yields, and the saved state includes no command that arrives meanwhile. So handlers must not wait for the
	// loop.
	r.refusal = refuse(names.RunContinuingError, errContinuing)
	r.setProblem("")
	r.showAttributes()
	r.charge(2 * maxStateBytes)
	r.awaitHandlers()
	if r.isOvertaken() {
		r.refusal = nil
		return nil
	}
	next.State = runState
	return workflow.NewContinueAsNewError(r.root, workflow.GetInfo(r.root).WorkflowType.Name, next)
}

// nextInput returns the input of the next execution without its state, stored and by reference if it is large. It returns nil
// if something has happened meanwhile.
func (r *run) nextInput() (*v1.RunInput, error) {
	if key := r.received.GetStored(); key != "" {
		return &v1.RunInput{Stored: key, Generation: r.in.GetGeneration(), Chain: r.chain}, nil
	}
	next := &v1.RunInput{
		Definition:      r.received.GetDefinition(),
		Input:           r.received.GetInput(),
		References:      r.received.GetReferences(),
		Packed:          r.received.GetPacked(),
		Options:         r.in.GetOptions(),
		Generation:      r.in.GetGeneration(),
		Partition:       r.in.GetPartition(),
		ParentRun:       r.in.GetParentRun(),
		ParentTask:      r.in.GetParentTask(),
		ParentFirst:     r.in.GetParentFirst(),
		Depth:           r.in.GetDepth(),
		By:              r.in.GetBy(),
		ByRole:          r.in.GetByRole(),
		NeedsApproval:   r.in.GetNeedsApproval(),
		SignedDecisions: r.in.GetSignedDecisions(),
		CacheScope:      r.in.GetCacheScope(),
		Batch:           r.in.GetBatch(),
		Chain:           r.chain,
	}
	if proto.Size(next) <= maxStateBytes/2 {
		return next, nil
	}
	var stored v1.RunInput
	err := r.mustNow("save what it was started with", names.SaveInputActivity, &stored, r.home(), next)
	if errors.Is(err, errInterrupted) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("save what the run was started with: %w", err)
	}
	stored.Chain = r.chain
	return &stored, nil
}

// takeBackRequests withdraws the requests for nodes and locks that the next execution might not repeat, because it may admit
// other tasks or form other batches. A placement or lock granted for such a request would never be used. It reports whether
// there is anything to send to the queue first.
func (r *run) takeBackRequests() bool {
	left := false
	for i := range r.core.Len() {
		if u := r.units[i]; u != nil && u.lead == i && (r.waitsForNode(i, u.claim) && r.usesRunSlot(i) || r.waitsForLock(u)) {
			r.suspend(u, v1.ReasonContinued, "the run continues as new")
			left = true
		}
	}
	return left || r.placement.pausing && len(r.placement.released) > 0
}

// usesRunSlot reports whether the request of a task depends on what else is waiting.
func (r *run) usesRunSlot(i int) bool {
	a := r.admissible(i)
	return a.Batch.Auto || a.Batch.Size > 1 || a.Concurrency > 0 || a.Lock.Name != "" || r.in.GetDefinition().GetMaxParallel() > 0
}

// isOvertaken reports whether something has happened that the state to be handed over does not include. It leaves commands to
// the loop, because they change the state.
func (r *run) isOvertaken() bool {
	r.receive() // may yield
	return len(r.commands) > 0 || r.woken || len(r.events) > 0 || len(r.locks.requests) > 0 || !r.isQuiet()
}

// runState returns the state of the run for the next execution.
func (r *run) runState() *v1.RunState {
	c := r.status.RunState(r.core)
	c.Cancelled, c.CancelledBy = r.core.Cancelled(), r.cancelledBy
	c.EventSlices, c.NextEvent = r.log.StoredParts(), r.log.Next()
	if r.in.GetPartition() != nil {
		c.HaltReason = r.core.GroupHalted(0)
	}
	for _, m := range r.partitioned {
		if t := c.Tasks[r.graph.Name(m.task)]; t != nil {
			t.Partitions, t.PreviousPartitions, t.Requeued, t.Partial = m.partitions, m.before, m.requeued, m.partial
		}
	}
	for i := range r.graph.Len() {
		if t := c.Tasks[r.graph.Name(i)]; t != nil && r.graph.FansOut(i) {
			t.DurationEstimate = r.durationEstimateOf(i)
		}
	}
	r.detachedAttempts(c)
	c.Abandoned = r.abandoned
	r.saveApprovals(c)
	//workflowcheck:ignore (into a map again)
	for i, child := range r.childRuns {
		c.Tasks[r.core.Name(i)].ChildFirst = child.first
	}
	c.Paused = r.admission.Paused()
	if first := r.core.FirstFailure(); first >= 0 {
		c.FirstFailure = r.graph.Name(first)
	}
	if a := r.core.Aborted(); a != (dag.Abort{}) {
		c.Abort = &v1.Run{State: a.State, Reason: a.Reason, Error: a.Error}
	}
	if !r.deadlineAt.IsZero() {
		c.DeadlineAt = timestamppb.New(r.deadlineAt)
	}
	return c
}

// restore continues from the state that the previous execution left.
func (r *run) restore(runState *v1.RunState) error {
	tasks := map[string]*v1.TaskState{}
	take := func(part *v1.RunState) {
		//workflowcheck:ignore (into a map again)
		for name, t := range part.GetTasks() {
			tasks[name] = t
		}
		if part.GetContext() != nil {
			r.context = structs.Clone(part.GetContext())
		}
	}
	take(runState)
	for _, key := range runState.GetStored() {
		var part v1.RunState
		if err := r.mustNow("load its state", names.LoadStateActivity, &part, &v1.LoadStateRequest{Key: key}); err != nil {
			return fmt.Errorf("load the state of the run: %w", err)
		}
		if packed := part.GetPacked(); len(packed) > 0 {
			if err := definition.UnpackMessage(packed, &part); err != nil {
				return fmt.Errorf("load the state of the run: %w", err)
			}
		}
		take(&part)
	}
	if err := r.restoreCore(runState, tasks); err != nil {
		return err
	}
	r.status = status.New(r.self, r.in, r.graph, runState.GetCreatedAt().AsTime())
	r.status.Run.Approval = runState.GetApproval()
	r.status.Run.SubmittedBy, r.cancelledBy = runState.GetSubmittedBy(), runState.GetCancelledBy()
	r.status.Revision = max(r.status.Revision, runState.GetRevision())
	r.status.Log.ContinueFrom(runState.GetEventSlices(), runState.GetNextEvent())
	r.status.AddInstances(r.core)
	for i := range r.core.Len() {
		if t := tasks[r.core.Name(i)]; t != nil {
			if len(r.startsWith().From) > 0 && !v1.IsTaskTerminal(r.core.Task(i).State) {
				t.Checkpoint = nil // the task starts again from its beginning
			}
			_, instances := r.core.Instances(r.status.TaskOf(i))
			r.status.Restore(i, t, instances > 0)
			r.restorePartitions(i, t)
			r.learn(i, t.GetDurationEstimate())
			r.restoreAttempt(t.GetDetachedAttempt())
			if r.in.GetState() != nil && v1.IsTaskDispatched(t.GetTask().GetState()) && r.core.Definition(i).GetType() == v1.TypeRun && t.GetTask().Count == nil {
				r.restoreChild(i, t)
			}
		}
		r.status.Touch(i) // clients that watched the previous execution see all of it again
		if r.core.Task(i).State == v1.TaskAssigned && r.core.Definition(i).GetType() == v1.TypeApproval {
			r.restoreApproval(i, tasks[r.core.Name(i)])
			r.track(&unit{lead: i, members: []int{i}, claim: r.core.Task(i).Claim, lock: r.lockOf(i)})
		}
	}
	r.status.SetContext(r.context)
	r.abandoned = slices.Clone(runState.GetAbandoned())
	for _, name := range runState.GetHeld() {
		if i, ok := r.core.Index(name); ok {
			r.admission.Hold(i)
			r.status.SetHeld(i, true, runState.GetHeldBy()[name])
		}
	}
	if runState.GetPaused() {
		r.admission.Pause()
		r.status.PausedBy = runState.GetPausedBy()
	}
	if runState.GetDeadlineAt() != nil {
		r.deadlineAt = runState.GetDeadlineAt().AsTime()
	}
	r.cancelled = r.core.Cancelled()
	r.status.Run.State = r.openState()
	for i := range r.graph.Len() {
		if v1.IsTaskDispatched(r.core.Task(i).State) {
			r.ready(i, workflow.Now(r.ctx))
		}
	}
	return nil
}

// restoreCore creates the core from the carried state of tasks and instances.
func (r *run) restoreCore(runState *v1.RunState, tasks map[string]*v1.TaskState) error {
	end := runState.GetAbort()
	options := []dag.RestoreOption{
		dag.WithCancelled(runState.GetCancelled()),
		dag.WithAborted(dag.Abort{State: end.GetState(), Reason: end.GetReason(), Error: end.GetError()}),
	}
	records := make([]dag.Record, r.graph.Len())
	for i := range r.graph.Len() {
		name := r.graph.Name(i)
		t := tasks[name]
		if t == nil {
			continue
		}
		records[i] = status.RecordOf(t)
		from, count := 0, int(t.GetTask().GetCount())
		if part := r.in.GetPartition(); part != nil {
			from, count = int(part.GetFrom()), int(part.GetTo()-part.GetFrom())
		}
		if t.GetTask().Count == nil || count == 0 || len(t.GetPartitions()) > 0 && records[i].State == v1.TaskPending ||
			len(t.GetPartitions()) == 0 && r.isLarge(i, count) { // its instances are no longer known
			continue
		}
		options = append(options, dag.WithExpansion(i, from, count, len(t.GetPartitions()) > 0))
		if len(t.GetPartitions()) > 0 {
			continue
		}
		for number := from; number < from+count; number++ {
			var rec dag.Record
			if t := tasks[names.InstanceName(name, number)]; t != nil {
				rec = status.RecordOf(t)
			}
			records = append(records, rec)
		}
	}
	again := r.startsWith()
	if r.in.GetPartition() != nil {
		again.Tasks = deadLettersAmong(again.Tasks, tasks)
		halted := runState.GetHaltReason()
		if r.in.GetState() == nil {
			halted = r.in.GetPartition().GetHaltReason()
		}
		options = append(options, dag.WithHaltedGroup(0, halted))
	} else {
		again.Tasks, again.Partitioned = partitionedTasks(again.Tasks, tasks)
	}
	if i, ok := r.graph.Index(runState.GetFirstFailure()); ok {
		options = append(options, dag.WithFirstFailure(i))
	}
	var err error
	r.core, err = dag.Reopen(r.graph, records, again, options...)
	if err != nil {
		return fmt.Errorf("continue the run: %w", err)
	}
	return nil
}
