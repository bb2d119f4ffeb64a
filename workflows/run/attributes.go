package run

import (
	"cmp"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/visibility"
)

// attributes holds the search attributes of a run: those that visibility shows and those that it should show. A partition has
// none.
type attributes struct {
	shown, wanted visibility.Attributes
}

// readAttributes reads the search attributes that visibility has and adds those that follow from the run's input.
func (r *run) readAttributes() {
	if r.received.GetPartition() != nil || r.in.GetPartition() != nil {
		return
	}
	info := workflow.GetInfo(r.root)
	shown := visibility.Read(workflow.GetTypedSearchAttributes(r.root))
	wanted := shown
	wanted.Parent = r.in.GetParentRun()
	if r.in.GetGeneration() == 0 { // in a later generation, By is who restarted the run
		wanted.AddOrigin(r.in.GetBy(), r.in.GetBatch())
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
	if def := r.in.GetDefinition(); def != nil {
		wanted.Describe(def)
	}
	r.attributes = attributes{shown: shown, wanted: wanted}
}

// showAttributes sends the changed search attributes to visibility in one command.
func (r *run) showAttributes() {
	a := &r.attributes
	if r.in.GetPartition() != nil || len(a.wanted.Updates(a.shown)) == 0 {
		return
	}
	r.charge(commandCharge + visibility.MaxBytes)
	updates := a.wanted.Updates(a.shown) // a handler may have run in between
	a.shown = a.wanted
	a.shown.Nodes = slices.Clone(a.wanted.Nodes)
	if err := workflow.UpsertTypedSearchAttributes(r.ctx, updates...); err != nil {
		workflow.GetLogger(r.ctx).Warn("the search attributes could not be updated", "error", err)
	}
}

// endAttributes sends the outcome of the run to visibility, so that a closed run is never listed as running.
func (r *run) endAttributes(state, text string) {
	r.attributes.wanted.End(state, text)
	r.showAttributes()
}

// countDeadLetters returns the number of dead letters of the run, including those of its partitions.
func (r *run) countDeadLetters() int {
	n := r.core.Count(v1.TaskDeadLetter)
	for _, m := range r.partitioned {
		if f := r.status.FanOut(m.task); f != nil && f.Counts[v1.TaskDeadLetter] > 0 {
			n += int(f.Counts[v1.TaskDeadLetter])
		}
	}
	return n
}
