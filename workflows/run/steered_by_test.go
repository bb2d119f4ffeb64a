package run

import (
	"testing"

	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/limits"
)

// A held task and a paused run show who did it and why, until they are released or resumed.
func TestHoldAndPauseShowWhoAndWhy(t *testing.T) {
	t.Parallel()
	env := newTestEnvironment()
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		def := &v1.Definition{Name: "steered", Tasks: map[string]*v1.TaskDefinition{"late": {Type: v1.TypeShell}}}
		r := newRun(ctx, nil, limits.Run{}.WithDefaults())
		r.in = &historyv1.RunInput{Definition: def, State: &historyv1.RunState{}}
		var err error
		if r.graph, err = dag.NewGraph(def, nil); err != nil {
			return err
		}
		if err := r.handover.restore(r.in.GetState()); err != nil {
			return err
		}
		r.log = r.status.Log
		want := func(task, run string) {
			t.Helper()
			r.status.SetRunState(r.openState())
			shown := r.status.Whole().GetRun()
			if got := shown.GetTasks()["late"].GetError(); got != task {
				t.Errorf("the task shows %q, want %q", got, task)
			}
			if shown.GetError() != run {
				t.Errorf("the run shows %q, want %q", shown.GetError(), run)
			}
		}
		r.controls.hold(0, &historyv1.TaskCommand{Task: "late", By: "ann", Reason: "not yet"})
		r.controls.pause(&historyv1.RunCommand{By: "bob", Reason: "lunch"})
		want("by ann: not yet", "paused by bob: lunch")
		if runState := r.handover.runState(); runState.GetHeldBy()["late"] != "by ann: not yet" || runState.GetPausedBy() != "paused by bob: lunch" {
			t.Errorf("the next execution is given %v", runState)
		}
		r.controls.unhold(0, &historyv1.TaskCommand{Task: "late"})
		r.controls.resume(&historyv1.RunCommand{})
		want("", "")
		r.controls.hold(0, &historyv1.TaskCommand{Task: "late"})
		r.controls.pause(&historyv1.RunCommand{})
		want("by a person", "")
		return nil
	})
	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
}
