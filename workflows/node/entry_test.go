package node

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

// TestEntryOfALiveNodeContinuesAsNew checks that drains do not fill the history while one worker stays registered.
func TestEntryOfALiveNodeContinuesAsNew(t *testing.T) {
	t.Parallel()
	env := (&testsuite.WorkflowTestSuite{}).NewTestWorkflowEnvironment()
	env.RegisterWorkflowWithOptions(Registrar{}.Node, workflow.RegisterOptions{Name: names.NodeWorkflow})
	env.RegisterActivityWithOptions(func(context.Context, *historyv1.NodeInput) error {
		<-t.Context().Done()
		return nil
	}, activity.RegisterOptions{Name: names.HeartbeatActivity})
	update := func(after time.Duration, name string, args ...any) {
		env.RegisterDelayedCallback(func() {
			env.UpdateWorkflow(name, name, &testsuite.TestUpdateCallback{
				OnAccept: func() {},
				OnReject: func(err error) { t.Errorf("%s: %v", name, err) },
				OnComplete: func(_ any, err error) {
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
				},
			}, args...)
		}, after)
	}
	update(0, names.RegisterUpdate, &historyv1.NodeRegistration{Name: "n1", Incarnation: "i1"})
	env.RegisterDelayedCallback(func() { env.SetCurrentHistoryLength(2000) }, 2*time.Millisecond)
	update(2*time.Millisecond, names.UndrainUpdate)
	env.ExecuteWorkflow(names.NodeWorkflow, &historyv1.NodeInput{Name: "n1"})
	if err := env.GetWorkflowError(); !workflow.IsContinueAsNewError(err) {
		t.Errorf("the workflow ends with %v", err)
	}
}
