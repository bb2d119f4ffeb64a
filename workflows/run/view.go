package run

import (
	"cmp"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/visibility"
)

// view is what others see of the run. It owns the search attributes: those that visibility shows and those that it should show.
// A partition has none. It also answers the queries and stores the events of the run.
type view struct {
	*execution
	outbox charger
	store  viewStore

	shown, wanted visibility.Attributes
}

// The view uses these parts of other components.
type (
	viewStore interface {
		mustNow(summary, activity string, result any, args ...any) error
		try(summary, activity string, result any, args ...any) error
		shownProblem() string
	}
)

// readAttributes reads the search attributes that visibility has and adds those that follow from the run's input.
func (v *view) readAttributes() {
	if v.received.GetPartition() != nil || v.in.GetPartition() != nil {
		return
	}
	info := workflow.GetInfo(v.root)
	shown := visibility.Read(workflow.GetTypedSearchAttributes(v.root))
	wanted := shown
	wanted.Parent = v.in.GetParentRun()
	if v.in.GetGeneration() == 0 { // in a later generation, By is who restarted the run
		wanted.AddOrigin(v.in.GetBy(), v.in.GetBatch())
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
	wanted.Workflow = cmp.Or(v.received.GetWorkflow(), wanted.Workflow)
	if def := v.in.GetDefinition(); def != nil {
		wanted.Describe(def)
	}
	v.shown, v.wanted = shown, wanted
}

// showAttributes sends the changed search attributes to visibility in one command.
func (v *view) showAttributes() {
	if v.in.GetPartition() != nil || len(v.wanted.Updates(v.shown)) == 0 {
		return
	}
	v.outbox.charge(commandCharge + visibility.MaxBytes)
	updates := v.wanted.Updates(v.shown) // a handler may have run in between
	v.shown = v.wanted
	v.shown.Nodes = slices.Clone(v.wanted.Nodes)
	if err := workflow.UpsertTypedSearchAttributes(v.ctx, updates...); err != nil {
		workflow.GetLogger(v.ctx).Warn("the search attributes could not be updated", "error", err)
	}
}

// endAttributes sends the outcome of the run to visibility, so that a closed run is never listed as running.
func (v *view) endAttributes(state, text string) {
	v.wanted.End(state, text)
	v.showAttributes()
}

// showDeadLetters adds the number of dead letters to the search attributes that are to be shown.
func (v *view) showDeadLetters() { v.wanted.DeadLetters = v.countDeadLetters() }

// usedNodes returns the nodes that the run has used.
func (v *view) usedNodes() []string { return v.wanted.Nodes }

// countDeadLetters returns the number of dead letters of the run, including those of its partitions.
func (v *view) countDeadLetters() int {
	return v.core.Count(v1.TaskDeadLetter) + v.fanOuts.CountDeadLetters()
}

// addNode adds a node that the run uses to the search attributes.
func (v *view) addNode(node string) { v.wanted.AddNode(node) }

// openState returns the state of the run while it is open. A run that waits for its run slot is pending.
func (v *view) openState() string {
	switch {
	case v.awaitsApproval():
		return v1.RunPendingApproval
	case v.flight.IsPaused():
		return v1.RunPaused
	case v.awaitsSlot:
		return v1.RunPending
	case v.flight.Approvals() > 0 && v.underWay() == v.flight.Approvals():
		return v1.RunPendingApproval
	}
	return v1.RunRunning
}

// underWay returns the number of tasks and instances that wait for a node or have one.
func (v *view) underWay() int {
	return v.core.Count(v1.TaskQueued) + v.core.Count(v1.TaskAssigned) + v.core.Count(v1.TaskRunning) - v.core.RunningGroups()
}

// showState updates the state of the open run in its status and in visibility.
func (v *view) showState() { v.setState(v.openState()) }

// setState shows a state of the open run, and the number of its dead letters, in its status and in visibility.
func (v *view) setState(state string) {
	v.status.SetRunState(state)
	v.wanted.State, v.wanted.DeadLetters = state, v.countDeadLetters()
	v.showAttributes()
}
