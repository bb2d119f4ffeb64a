package run

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/structpb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/command"
	"switchyard/workflows/core/dataflow"
	"switchyard/workflows/core/fanout"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/definition"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
	"switchyard/workflows/structs"
	"switchyard/workflows/view"
)

// snapshot returns the state of the run for the next execution.
func (r *run) snapshot() *historyv1.RunState {
	c := &historyv1.RunState{
		Tasks: map[string]*historyv1.TaskState{}, Waiting: r.waiting, EventSlices: r.log.StoredParts(), NextEvent: r.log.Next(),
	}
	r.core.Save(c)
	r.flight.Save(c)
	r.fanOuts.Save(c)
	r.commands.Save(c)
	r.status.Save(c)
	return c
}

// restore continues from the state that the previous execution left.
func (r *run) restore(left *historyv1.RunState) error {
	tasks, context, err := r.loadParts(left)
	if err != nil {
		return err
	}
	if r.core, err = fanout.RestoreCore(r.Config, r.graph, left, tasks); err != nil {
		return err
	}
	r.newParts(context, left.GetCreatedAt().AsTime())
	r.log.ContinueFrom(left.GetEventSlices(), left.GetNextEvent())
	r.status.RestoreRun(left)
	r.commands.Restore(left)
	r.status.AddInstances()
	for i := range r.core.Len() {
		t := tasks[r.core.Name(i)]
		fanOut := r.fanOuts.Restore(i, t)
		if t != nil {
			_, instances := r.core.Instances(r.core.TaskOf(i))
			r.records.Restore(i, t, instances > 0 || r.fanOuts.IsPartitioned(i))
			r.status.Restore(i, t)
		}
		r.fly(r.flight.RestoreTask(i, t, r.now()))
		r.spread(fanOut)
		r.status.Touch(i) // clients that watched the previous execution see all of it again
	}
	r.status.SetContext(context)
	r.fly(r.flight.Restore(left))
	state := r.commands.OpenState()
	if left.GetWaiting() && state == v1.RunRunning {
		state = v1.RunPending
	}
	r.status.SetRunState(state)
	for i := range r.graph.Len() {
		if v1.IsTaskDispatched(r.core.Task(i).State) {
			r.fly(r.flight.StartDeadline(i, r.now()))
		}
	}
	if r.inFinally = r.core.InFinally(); r.inFinally {
		r.fly(r.flight.StartFinally(r.now()))
	}
	return nil
}

// loadParts returns the states of all tasks and instances, by name, and the context of the run. A partition that was open in a
// previous generation has the context of its run.
func (r *run) loadParts(left *historyv1.RunState) (map[string]*historyv1.TaskState, *structpb.Struct, error) {
	tasks, context := map[string]*historyv1.TaskState{}, structs.Clone(r.Input.GetDefinition().GetContext())
	add := func(part *historyv1.RunState) {
		//workflowcheck:ignore (into a map again)
		for name, t := range part.GetTasks() {
			tasks[name] = t
		}
		if part.GetContext() != nil && (r.Input.GetState() != nil || r.Input.GetPartition() == nil) {
			context = structs.Clone(part.GetContext())
		}
	}
	add(left)
	for _, key := range left.GetStored() {
		var part historyv1.RunState
		err := r.calls.MustNow("load its state", names.LoadStateActivity, &part, &historyv1.LoadStateRequest{Key: key})
		if packed := part.GetPacked(); err == nil && len(packed) > 0 {
			err = definition.UnpackMessage(packed, &part)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("load the state of the run: %w", err)
		}
		add(&part)
	}
	return tasks, context, nil
}

// newParts creates what surrounds the core of a run that was created at a time. Nothing has happened in it yet.
func (r *run) newParts(context *structpb.Struct, created time.Time) {
	c := r.Config
	r.records = flight.NewRecords(r.Input.GetOptions())
	r.flight = flight.New(c, r.core, r.records)
	r.fanOuts = fanout.New(c, r.core, r.records, context)
	r.log = eventlog.New(r.core.Name, r.eventID)
	r.status = view.New(r.Self, r.Input, r.graph, r.core, r.flight, r.records, r.log, created)
	r.commands.Facts = command.Facts{Core: r.core, Records: r.records, Flight: r.flight, FanOuts: r.fanOuts}
	r.data = dataflow.New(c, r.graph, r.commands)
	r.data.Trigger = r.wanted.Trigger
}

// beginNew creates the state of a run without previous work.
func (r *run) beginNew() {
	now := r.now()
	r.core, r.commands.SubmittedBy = fanout.NewCore(r.Config, r.graph), r.Input.GetBy()
	r.newParts(structs.Clone(r.Input.GetDefinition().GetContext()), workflow.GetInfo(r.root).WorkflowStartTime)
	r.log.Add(now, v1.EventSubmitted, eventlog.WholeRun, "", 0, 0, phrase.By("", r.Input.GetBy()), eventlog.KeyBy.Of(r.Input.GetBy()))
	for i := range r.graph.Len() {
		r.log.Add(now, v1.EventSubmitted, i, "", 0, 0, "")
	}
	if r.Input.GetPartition().GetPaused() {
		r.flight.Pause()
	}
}

// reopen restores the status with which the previous generation ended.
func (r *run) reopen() error {
	var left historyv1.RunState
	req := &historyv1.ReopenRequest{RunId: r.RunID, Chain: r.Input.GetChain(), Execution: r.Execution, Generation: r.Input.GetGeneration(), Terminated: r.Input.GetTerminated(), FinallyOnly: r.Input.GetRerun().GetFinallyOnly()}
	if err := r.calls.MustNow("load the state of the run that has ended", names.ReopenActivity, &left, req); err != nil {
		return fmt.Errorf("load the state of generation %d of the run: %w", req.GetGeneration()-1, err)
	}
	left.EventSlices, left.NextEvent = 0, 0 // those belong to the previous generation
	if err := r.restore(&left); err != nil {
		return err
	}
	r.commands.IsCancelled = false // the previous generation was, even if only its `finally` runs again
	return nil
}

// reopenPartition continues from the state that the partition left in a previous generation. Without that state, all instances
// run again.
func (r *run) reopenPartition() {
	part := r.Input.GetPartition()
	before, _ := names.ParseFanOutID(part.GetPrevious())
	var left historyv1.RunState
	err := r.calls.MustNow("load the state of the partition in the previous generation", names.ReopenActivity, &left,
		&historyv1.ReopenRequest{RunId: part.GetPrevious(), Execution: r.Execution, Generation: before.Generation + 1})
	if err == nil {
		err = r.restore(&left)
	}
	if err != nil {
		workflow.GetLogger(r.ctx).Warn("the partition starts anew because its state could not be loaded", "error", err)
		r.beginNew()
		return
	}
	if part.GetPrevious() != r.Self {
		r.log.ContinueFrom(0, 0)
	}
	if part.GetPaused() {
		r.flight.Pause()
	}
}
