package election

import (
	"context"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
)

// TestLeaderContinuesAsNewAfterManySignals checks that signals, which nothing reads, do not fill the history while one process leads,
// and that its term ends before the next execution begins another one.
func TestLeaderContinuesAsNewAfterManySignals(t *testing.T) {
	t.Parallel()
	env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	env.RegisterWorkflowWithOptions(Leader, workflow.RegisterOptions{Name: names.LeaderWorkflow})
	ended := false
	env.RegisterActivityWithOptions(func(context.Context) error {
		<-t.Context().Done()
		return nil
	}, activity.RegisterOptions{Name: names.LeadActivity})
	env.SetOnActivityCanceledListener(func(*activity.Info) { ended = true })
	env.RegisterDelayedCallback(func() {
		env.SetCurrentHistoryLength(leaderHistoryEvents)
		env.SignalWorkflow("anything", nil)
	}, time.Millisecond)
	env.ExecuteWorkflow(names.LeaderWorkflow, &historyv1.LeaderInput{})
	if err := env.GetWorkflowError(); !workflow.IsContinueAsNewError(err) || !ended {
		t.Errorf("the workflow ends with %v; the term has ended: %v", err, ended)
	}
}
