package run

import (
	"cmp"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/visibility"
)

// readAttributes reads the search attributes that visibility has and adds those that follow from the run's input.
func (r *run) readAttributes() {
	if r.received.GetPartition() != nil || r.Input.GetPartition() != nil {
		return
	}
	info := workflow.GetInfo(r.root)
	shown := visibility.Read(workflow.GetTypedSearchAttributes(r.root))
	wanted := shown
	wanted.Parent = r.Input.GetParentRun()
	if r.Input.GetGeneration() == 0 { // in a later generation, By is who restarted the run
		wanted.AddOrigin(r.Input.GetBy(), r.Input.GetBatch())
	}
	if wanted.Submitted.IsZero() {
		wanted.Submitted = info.WorkflowStartTime.Truncate(time.Microsecond)
	}
	if wanted.Trigger == "" {
		wanted.Trigger = v1.TriggerManual
		if visibility.IsScheduled(info.SearchAttributes) {
			wanted.Trigger = v1.TriggerSchedule
		}
	}
	wanted.Workflow = cmp.Or(r.received.GetWorkflow(), wanted.Workflow)
	if def := r.Input.GetDefinition(); def != nil {
		wanted.Describe(def)
	}
	r.shown, r.wanted = shown, wanted
}

// showAttributes sends the changed search attributes to visibility in one command.
func (r *run) showAttributes() {
	if r.Input.GetPartition() != nil || len(r.wanted.Updates(r.shown)) == 0 {
		return
	}
	r.calls.Charge(calls.CommandCharge + visibility.MaxBytes)
	updates := r.wanted.Updates(r.shown) // a handler may have run in between
	r.shown = r.wanted
	r.shown.Nodes = slices.Clone(r.wanted.Nodes)
	if err := workflow.UpsertTypedSearchAttributes(r.ctx, updates...); err != nil {
		workflow.GetLogger(r.ctx).Warn("the search attributes could not be updated", "error", err)
	}
}

// endAttributes sends the outcome of the run to visibility, so that a closed run is never listed as running.
func (r *run) endAttributes(state, text string) {
	r.wanted.End(state, text)
	r.showAttributes()
}

// showState updates the state of the open run in its status and in visibility.
func (r *run) showState() { r.setState(r.commands.OpenState()) }

// setState shows a state of the open run, and the number of its dead letters, in its status and in visibility.
func (r *run) setState(state string) {
	r.status.SetRunState(state)
	r.wanted.State = state
	r.setDeadLetters()
	r.showAttributes()
}

// setDeadLetters updates the number of dead letters, and tells people about the first one.
func (r *run) setDeadLetters() {
	before := r.wanted.DeadLetters
	r.wanted.DeadLetters = r.commands.DeadLetters()
	if before == 0 && r.wanted.DeadLetters > 0 {
		r.notifyOpen(v1.NotifyDeadLetter, eventlog.WholeRun, "")
	}
}

// showProblem shows why the run cannot continue, or that it can if the text is empty.
func (r *run) showProblem(text string) {
	if r.status != nil {
		r.status.SetProblem(text)
	}
}
