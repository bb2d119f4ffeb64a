package run

import (
	"testing"

	"go.temporal.io/sdk/workflow"

	"switchyard/workflows/core/flight"
	"switchyard/workflows/limits"
)

// An attempt that was away before this execution has no activity yet, and can be stopped regardless.
func TestAttemptWithoutAnActivityIsCancelled(t *testing.T) {
	t.Parallel()
	env := newTestEnvironment()
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		newRun(ctx, nil, limits.Run{}.WithDefaults()).fly([]flight.Effect{flight.Cancel{Unit: &flight.Unit{Phase: flight.Away}}})
		return nil
	})
	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
}
