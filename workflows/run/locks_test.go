package run

import (
	"slices"
	"testing"

	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/admission"
	"switchyard/workflows/dag"
	"switchyard/workflows/limits"
)

// A task that waits for a lock while its run prepares to continue as new requests the lock again, even if the run does not
// continue as new after all.
func TestLocksAreAskedForAgain(t *testing.T) {
	t.Parallel()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		def := &v1.Definition{Name: "locked", Tasks: map[string]*v1.TaskDefinition{"a": {Type: "shell", Mutex: "m"}}}
		r := newRun(ctx, nil, limits.Run{}.WithDefaults())
		r.in, r.admission = &v1.RunInput{Definition: def}, admission.New(0)
		var err error
		if r.graph, err = dag.NewGraph(def, nil); err != nil {
			return err
		}
		r.beginNew()
		asks := func(d dag.Decisions) bool {
			r.locks.requests = nil
			for _, i := range d.Place {
				r.want(i)
			}
			r.admit()
			return len(r.locks.requests) == 1 && r.locks.requests[0].GetAcquire() != nil
		}
		if !asks(r.core.Start()) {
			t.Fatal("the lock is not asked for")
		}
		first := r.locks.requests[0].GetAcquire().GetClaim()
		if !r.takeBackRequests() || len(r.locks.wanted) > 0 {
			t.Error("the request is not taken back")
		}
		if !slices.ContainsFunc(r.locks.requests, func(q *v1.LockRequest) bool { return q.GetFree().GetClaim() == first }) {
			t.Errorf("the lock is not told: %v", r.locks.requests)
		}
		if !asks(r.core.Apply(r.events...)) {
			t.Error("the lock is not asked for again")
		}
		return nil
	})
	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
}
