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

// beginStored resolves the stored workflow that the run was started with and continues as new with its definition, so that
// every reader of the run's input finds the definition there. It always returns an error, which is the error of the workflow.
func (r *run) beginStored() error {
	r.view.readAttributes()
	var whole v1.RunInput
	home := names.Home(r.self, chainOf(workflow.GetInfo(r.root), ""))
	if err := r.store.mustNow("read workflow "+r.received.GetWorkflow(), names.LoadWorkflowActivity, &whole, home, r.received); err != nil {
		return r.unfit("bad_definition", errors.New(causeOf(err)))
	}
	r.outbox.charge(definition.MaxAnswerBytes) // for the input of the next execution
	r.store.setProblem("")
	r.view.showAttributes()
	r.commands.refuseAll(names.RunContinuingError, errContinuing)
	if r.commands.cancelRequested() {
		r.view.endAttributes(v1.RunCancelled, "")
		return temporal.NewCanceledError()
	}
	return workflow.NewContinueAsNewError(r.root, names.RunWorkflow, &whole)
}

// validateInput returns an error if the input contains neither a definition nor a partition.
func (r *run) validateInput() error {
	if r.in.GetDefinition() == nil && r.in.GetPartition() == nil {
		return fmt.Errorf(`run %s was started without a definition; to start a stored workflow in Temporal, give {"workflow": "NAME", "input": {...}} as its input`, r.self)
	}
	return nil
}
