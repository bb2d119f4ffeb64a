package run

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// beginStored reads the stored workflow that the run was started with the name of, and leaves the run to an execution
// that was started with its definition: everything that reads what a run was started with finds it there. It always
// returns an error, that of the workflow.
func (r *run) beginStored() error {
	r.readAttributes()
	var whole v1.RunInput
	home := names.Home(r.self, chainOf(workflow.GetInfo(r.root), ""))
	if err := r.mustNow("read workflow "+r.received.GetWorkflow(), names.LoadWorkflowActivity, &whole, home, r.received); err != nil {
		return r.unfit("bad_definition", errors.New(causeOf(err)))
	}
	r.charge(definition.MaxAnswerBytes) // the input of the next execution
	r.setProblem("")
	r.showAttributes()
	r.refuseCommands(names.RunContinuingError, errContinuing)
	if r.cancelRequested() {
		r.endAttributes(v1.RunCancelled, "")
		return temporal.NewCanceledError()
	}
	return workflow.NewContinueAsNewError(r.root, names.RunWorkflow, &whole)
}

// validateInput returns an error where what the run was started with says nothing of what it is to do.
func (r *run) validateInput() error {
	if r.in.GetDefinition() == nil && r.in.GetPart() == nil {
		return fmt.Errorf(`run %s was started without a definition; to start a stored workflow in Temporal, give {"workflow": "NAME", "input": {...}} as its input`, r.self)
	}
	return nil
}
