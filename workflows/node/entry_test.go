package node

import (
	"context"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
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

// TestTermsAreRefusedForAnOldWorker checks that a worker that reports no terms is not sent any.
func TestTermsAreRefusedForAnOldWorker(t *testing.T) {
	t.Parallel()
	e := &entry{name: "n1", record: &historyv1.NodeRecord{}}
	change := &historyv1.NodeTermsChange{Clear: true}
	if err := e.maySetTerms(nil, change); err == nil || !strings.Contains(err.Error(), "is not registered") {
		t.Errorf("before it registers: %v", err)
	}
	e.record.Registration = &historyv1.NodeRegistration{Snapshot: &v1.NodeSnapshot{}}
	if err := e.maySetTerms(nil, change); err == nil || !strings.Contains(err.Error(), "too old") {
		t.Errorf("an old worker: %v", err)
	}
	e.record.Registration.Snapshot.Terms = &v1.NodeTerms{}
	if err := e.maySetTerms(nil, change); err != nil {
		t.Errorf("a new worker: %v", err)
	}
}
