package run

import (
	"testing"

	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/limits"
)

// A run that waits for its input shows why, and otherwise that it has not begun.
func TestStatusBeforeTheRunBegins(t *testing.T) {
	t.Parallel()
	env := newTestEnvironment()
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		r := newRun(ctx, &historyv1.RunInput{}, limits.Run{}.WithDefaults())
		if _, err := r.answerStatus(&historyv1.StatusRequest{}); err != errNotBegun {
			t.Errorf("the answer is %v", err)
		}
		const problem = "waits to load its input: the disk is full"
		r.calls.SetProblem(problem)
		res, err := r.answerStatus(&historyv1.StatusRequest{})
		if err != nil || res.GetRun().GetState() != v1.RunPending || res.GetRun().GetProblem() != problem {
			t.Errorf("%v, %v", res, err)
		}
		if _, err := r.answerEvents(&historyv1.EventsRequest{}); err != errNotBegun {
			t.Errorf("events: %v", err)
		}
		return nil
	})
	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
}
