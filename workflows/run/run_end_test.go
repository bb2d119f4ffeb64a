package run

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// The result of a workflow is its final status. For a large status or a child, it is only how the run has ended.
func TestWorkflowResult(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		bytes        int
		child, whole bool
	}{
		{bytes: 1000, whole: true},
		{bytes: maxResultBytes},
		{bytes: 1000, child: true},
	} {
		status := &historyv1.StatusResponse{TaskCount: 1, Run: &v1.Run{Id: "a-1", State: "failed", Error: "why", Tasks: map[string]*v1.Task{
			"t": {State: "failed", Result: &v1.TaskResult{Stdout: strings.Repeat("x", test.bytes)}},
		}}}
		kept := workflowResult(status, test.child)
		if proto.Equal(kept, status) != test.whole || kept.GetRun().GetError() != "why" || kept.GetTaskCount() != 1 {
			t.Errorf("%+v: %v", test, kept)
		}
	}
}
