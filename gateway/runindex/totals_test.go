package runindex

import (
	"maps"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/visibility"
)

// TestTotalsCountEachRunOnceInItsState checks the totals of runs in all states, including retried ones.
func TestTotalsCountEachRunOnceInItsState(t *testing.T) {
	t.Parallel()
	of := func(state string) visibility.Attributes { return visibility.Attributes{State: state, Owner: "ann"} }
	again := func(state string) visibility.Attributes {
		return visibility.Attributes{State: state, Owner: "ann", Trigger: v1.TriggerRetry}
	}
	f := &fakeVisibility{t: t, runs: []*workflowpb.WorkflowExecutionInfo{
		execution("new-a2", "1", time.Minute, running, visibility.Attributes{Owner: "ann"}),
		execution("gated-a2", "1", time.Minute, running, of(v1.RunPendingApproval)),
		execution("runs-a2", "1", time.Minute, running, of(v1.RunRunning)),
		execution("runs-b2", "1", time.Minute, running, visibility.Attributes{State: v1.RunRunning, Owner: "bob"}),
		execution("paused-a2", "1", time.Minute, running, of(v1.RunPaused)),
		execution("done-a2", "1", time.Hour, completed, of(v1.RunCompleted)),
		execution("no-a2", "1", time.Hour, failed, of(v1.RunRejected)),
		execution("bad-a2", "1", time.Hour, failed, of(v1.RunFailed)),
		execution("killed-a2", "1", time.Hour, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, of(v1.RunRunning)),
		execution("off-a2", "1", time.Hour, enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, of(v1.RunCancelled)),
		execution("retried-a2", "1", 3*time.Hour, failed, of(v1.RunFailed)),
		execution("retried-a2", "2", 2*time.Hour, failed, again(v1.RunFailed)),
		execution("retried-a2", "3", time.Hour, completed, again(v1.RunCompleted)),
	}}
	x := f.index()
	ofAnn := map[string]int32{
		v1.RunPending: 1, v1.RunPendingApproval: 1, v1.RunRunning: 1, v1.RunPaused: 1, v1.RunCompleted: 2, v1.RunRejected: 1,
		v1.RunFailed: 2, v1.RunCancelled: 1,
	}
	all := maps.Clone(ofAnn)
	all[v1.RunRunning]++
	// The state of the filter does not count.
	filter := RunFilter{ListRunsRequest: &v1.ListRunsRequest{State: v1.RunPaused}}
	if totals, err := x.Totals(operator(t), filter); err != nil || !maps.Equal(totals, all) {
		t.Errorf("the totals are %v, %v, want %v", totals, err, all)
	}
	if totals, err := x.Totals(ann(t), filter); err != nil || !maps.Equal(totals, ofAnn) {
		t.Errorf("the totals of an owner are %v, %v, want %v", totals, err, ofAnn)
	}
	if total, err := x.Total(operator(t), RunFilter{ListRunsRequest: &v1.ListRunsRequest{}}); err != nil || total != 11 {
		t.Errorf("the total is %d, %v", total, err)
	}
	if total, err := x.Total(ann(t), RunFilter{ListRunsRequest: &v1.ListRunsRequest{}}); err != nil || total != 10 {
		t.Errorf("the total of an owner is %d, %v", total, err)
	}
	none := map[string]int32{}
	for _, state := range v1.RunStates() {
		none[state] = 0
	}
	if totals, err := x.Totals(t.Context(), filter); err != nil || !maps.Equal(totals, none) {
		t.Errorf("the totals of a request without a caller are %v, %v", totals, err)
	}
}
