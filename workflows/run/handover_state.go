package run

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/command"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/fanout"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/definition"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
	"switchyard/workflows/phrase"
	"switchyard/workflows/status"
	"switchyard/workflows/structs"
)

// restore continues from the state that the previous execution left.
func (ho *handover) restore(runState *historyv1.RunState) error {
	tasks, context := map[string]*historyv1.TaskState{}, structs.Clone(ho.in.GetDefinition().GetContext())
	take := func(part *historyv1.RunState) {
		//workflowcheck:ignore (into a map again)
		for name, t := range part.GetTasks() {
			tasks[name] = t
		}
		if part.GetContext() != nil && !ho.reopensPartition() {
			context = structs.Clone(part.GetContext())
		}
	}
	take(runState)
	for _, key := range runState.GetStored() {
		var part historyv1.RunState
		if err := ho.calls.MustNow("load its state", names.LoadStateActivity, &part, &historyv1.LoadStateRequest{Key: key}); err != nil {
			return fmt.Errorf("load the state of the run: %w", err)
		}
		if packed := part.GetPacked(); len(packed) > 0 {
			if err := definition.UnpackMessage(packed, &part); err != nil {
				return fmt.Errorf("load the state of the run: %w", err)
			}
		}
		take(&part)
	}
	if err := ho.restoreCore(runState, tasks); err != nil {
		return err
	}
	ho.fanOuts = fanout.New(ho.fanOutConfig(), ho.core, context)
	ho.newFlight()
	ho.status = status.New(ho.self, ho.in, ho.graph, ho.records, runState.GetCreatedAt().AsTime())
	ho.status.RestoreRun(runState)
	ho.log = ho.status.Log
	ho.commands.Restore(runState)
	ho.status.AddInstances(ho.core)
	for i := range ho.core.Len() {
		t := tasks[ho.core.Name(i)]
		fanOut := ho.fanOuts.Restore(i, t)
		if t != nil {
			if len(ho.startsWith().From) > 0 && !v1.IsTaskTerminal(ho.core.Task(i).State) {
				t.Checkpoint = nil // the task starts again from its beginning
			}
			_, instances := ho.core.Instances(ho.core.TaskOf(i))
			ho.records.Restore(i, t, instances > 0 || ho.fanOuts.IsPartitioned(i))
			ho.status.Restore(i, t)
		}
		ho.fly(ho.flight.RestoreTask(i, t, ho.now()))
		ho.spread(fanOut)
		ho.status.Touch(i) // clients that watched the previous execution see all of it again
	}
	ho.status.SetContext(context)
	ho.fly(ho.flight.Restore(runState))
	state := ho.commands.OpenState()
	if runState.GetWaiting() && state == v1.RunRunning {
		state = v1.RunPending
	}
	ho.status.SetRunState(state)
	for i := range ho.graph.Len() {
		if v1.IsTaskDispatched(ho.core.Task(i).State) {
			ho.fly(ho.flight.StartDeadline(i, ho.now()))
		}
	}
	return nil
}

// restoreCore creates the core from the carried state of tasks and instances.
func (ho *handover) restoreCore(runState *historyv1.RunState, tasks map[string]*historyv1.TaskState) error {
	end := runState.GetAbort()
	options := []dag.RestoreOption{
		dag.WithCancelled(runState.GetCancelled()),
		dag.WithAborted(dag.Abort{State: end.GetState(), Reason: end.GetReason(), Error: end.GetError()}),
	}
	records := make([]dag.Record, ho.graph.Len())
	for i := range ho.graph.Len() {
		name := ho.graph.Name(i)
		t := tasks[name]
		if t == nil {
			continue
		}
		records[i] = dag.RecordOf(t)
		from, count := 0, int(t.GetTask().GetCount())
		if part := ho.in.GetPartition(); part != nil {
			from, count = int(part.GetFrom()), int(part.GetTo()-part.GetFrom())
		}
		if t.GetTask().Count == nil || count == 0 || len(t.GetPartitions()) > 0 && records[i].State == v1.TaskPending ||
			len(t.GetPartitions()) == 0 && ho.fanOutConfig().IsLarge(ho.graph.Definition(i), count) { // its instances are no longer known
			continue
		}
		options = append(options, dag.WithExpansion(i, from, count, len(t.GetPartitions()) > 0))
		if len(t.GetPartitions()) > 0 {
			continue
		}
		for number := from; number < from+count; number++ {
			var rec dag.Record
			if t := tasks[names.InstanceName(name, number)]; t != nil {
				rec = dag.RecordOf(t)
			}
			records = append(records, rec)
		}
	}
	again := ho.startsWith()
	if ho.in.GetPartition() != nil {
		again.Tasks = fanout.DeadLettersAmong(again.Tasks, tasks)
		halted := runState.GetHaltReason()
		if ho.in.GetState() == nil {
			halted = ho.in.GetPartition().GetHaltReason()
		}
		options = append(options, dag.WithHaltedGroup(0, halted))
	} else {
		again.Tasks, again.Partitioned = fanout.PartitionedTasks(again.Tasks, tasks)
	}
	if i, ok := ho.graph.Index(runState.GetFirstFailure()); ok {
		options = append(options, dag.WithFirstFailure(i))
	}
	var err error
	ho.core, err = dag.Reopen(ho.graph, records, again, options...)
	if err != nil {
		return fmt.Errorf("continue the run: %w", err)
	}
	return nil
}

// newFlight creates the state of units and of the records about tasks, both empty, and shows them to the commands.
func (ho *handover) newFlight() {
	ho.records = flight.NewRecords(ho.in.GetOptions())
	ho.flight = flight.New(flight.Config{
		Input: ho.in, RunID: ho.id, Chain: ho.chain, Self: ho.self, First: ho.first, Original: ho.original,
		Limits: ho.limits, HeartbeatTimeout: options.HeartbeatTimeout,
	}, ho.core, ho.records)
	ho.commands.Facts = command.Facts{
		Core: ho.core, Records: ho.records, Flight: ho.flight, FanOuts: ho.fanOuts,
		ShownState: func(i int) string { return ho.status.ShownState(i) },
	}
}

// beginNew creates the state of a run without previous work.
func (ho *handover) beginNew() {
	now := ho.now()
	ho.core, ho.commands.SubmittedBy = ho.newCore(), ho.in.GetBy()
	ho.fanOuts = fanout.New(ho.fanOutConfig(), ho.core, structs.Clone(ho.in.GetDefinition().GetContext()))
	ho.newFlight()
	ho.status = status.New(ho.self, ho.in, ho.graph, ho.records, workflow.GetInfo(ho.root).WorkflowStartTime)
	ho.log = ho.status.Log
	ho.log.Add(now, v1.EventSubmitted, eventlog.WholeRun, "", 0, 0, phrase.By("", ho.in.GetBy()), eventlog.KeyBy.Of(ho.in.GetBy()))
	for i := range ho.graph.Len() {
		ho.log.Add(now, v1.EventSubmitted, i, "", 0, 0, "")
	}
	if ho.in.GetPartition().GetPaused() {
		ho.flight.Pause()
	}
}

// reopen restores the status with which the previous generation ended.
func (ho *handover) reopen() error {
	var runState historyv1.RunState
	req := &historyv1.ReopenRequest{RunId: ho.id, Chain: ho.in.GetChain(), Execution: ho.executionID(), Generation: ho.in.GetGeneration(), Terminated: ho.in.GetTerminated()}
	if err := ho.calls.MustNow("load the state of the run that has ended", names.ReopenActivity, &runState, req); err != nil {
		return fmt.Errorf("load the state of generation %d of the run: %w", req.GetGeneration()-1, err)
	}
	runState.EventSlices, runState.NextEvent = 0, 0 // those belong to the previous generation
	return ho.restore(&runState)
}

// newCore returns the state of a run that begins.
func (ho *handover) newCore() *dag.State {
	if claim := ho.in.GetPartition().GetClaim(); claim > 0 {
		return dag.Restore(ho.graph, []dag.Record{{State: v1.TaskPending, ExitCode: -1, Claim: claim}})
	}
	return dag.New(ho.graph)
}

// reopensPartition reports whether this is a partition that was open in a previous generation. It has the context of its run.
func (ho *handover) reopensPartition() bool {
	return ho.in.GetState() == nil && ho.in.GetPartition() != nil
}

// reopenPartition continues from the state that the partition left in a previous generation. Without that state, all instances
// run again.
func (ho *handover) reopenPartition() {
	part := ho.in.GetPartition()
	before, _ := names.ParseFanOutID(part.GetPrevious())
	var runState historyv1.RunState
	err := ho.calls.MustNow("load the state of the partition in the previous generation", names.ReopenActivity, &runState,
		&historyv1.ReopenRequest{RunId: part.GetPrevious(), Execution: ho.executionID(), Generation: before.Generation + 1})
	if err == nil {
		err = ho.restore(&runState)
	}
	if err != nil {
		workflow.GetLogger(ho.ctx).Warn("the partition starts anew because its state could not be loaded", "error", err)
		ho.beginNew()
		return
	}
	if part.GetPrevious() != ho.self {
		ho.log.ContinueFrom(0, 0)
	}
	if part.GetPaused() {
		ho.flight.Pause()
	}
}
