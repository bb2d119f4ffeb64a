package run

import (
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// beginStored resolves the stored workflow that the run was started with and continues as new with its definition, so that
// every reader of the run's input finds the definition there. It always returns an error, which is the error of the workflow.
func (r *run) beginStored() error {
	r.readAttributes()
	var whole historyv1.RunInput
	home := names.Home(r.Self, chainOf(workflow.GetInfo(r.root), ""))
	if err := r.calls.MustNow("read workflow "+r.received.GetWorkflow(), names.LoadWorkflowActivity, &whole, home, r.received); err != nil {
		return r.failStart(v1.ReasonBadDefinition, errors.New(calls.CauseOf(err)))
	}
	r.calls.Charge(definition.MaxAnswerBytes) // for the input of the next execution
	r.calls.SetProblem("")
	r.showAttributes()
	r.refuseUpdates(names.RunContinuingError, errContinuing)
	if len(r.receiveCancelSignals()) > 0 || r.root.Err() != nil {
		r.endAttributes(v1.RunCancelled, "")
		r.Input = &whole
		r.notifyUnbegun(&v1.Run{State: v1.RunCancelled})
		return temporal.NewCanceledError()
	}
	return workflow.NewContinueAsNewError(r.root, names.RunWorkflow, &whole)
}
