package gateway

import (
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
)

// The last run is one that somebody has submitted, not one that a task has started.
func TestIsSubmitted(t *testing.T) {
	for name, test := range map[string]struct {
		id, parent string
		want       bool
	}{
		"submitted":           {"ci-0k", "", true},
		"started by a task":   {"child-0k", "ci-0k", false},
		"no run":              {"switchyard", "", false},
		"no run, and a child": {"ci-0k/0/each[500]", "ci-0k", false},
	} {
		info := &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: test.id}}
		if test.parent != "" {
			info.ParentExecution = &commonpb.WorkflowExecution{WorkflowId: test.parent}
		}
		if got := isSubmitted(info); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
