package runview_test

import (
	"slices"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"switchyard/gateway/runview"
	"switchyard/workflows/names"
)

func TestInstanceOfALargeFanOutIsFoundInItsChildWorkflow(t *testing.T) {
	run := &runview.Description{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: "ci-0k"}}}
	part := func(of, task string, from int) string {
		id := names.FanOut{Run: of, Chain: "c1", Task: task, From: from}.ID()
		run.PendingChildren = append(run.PendingChildren, &workflowpb.PendingChildExecutionInfo{WorkflowId: id})
		return id
	}
	first, second, other := part("ci-0k", "each", 0), part("ci-0k", "each", 1000), part("ci-0k", "wide", 0)
	part("ci-1k", "each", 500)
	run.PendingChildren = append(run.PendingChildren, &workflowpb.PendingChildExecutionInfo{WorkflowId: "nightly-0k1k2k3k"})
	for task, want := range map[string][]string{
		"each[0]": {first}, "each[999]": {first}, "each[1000]": {second}, "each[5000]": {second}, "wide[7]": {other},
		"each": {first, second}, "build": nil, "build[1]": nil, "": {first, second, other},
	} {
		if got := runview.OpenParts(run, task); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", task, got, want)
		}
	}
}
