package run

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

// A small final status is the result of its workflow, of a large one only how the run has ended.
func TestWorkflowResult(t *testing.T) {
	t.Parallel()
	for bytes, whole := range map[int]bool{1000: true, maxResultBytes: false} {
		status := &v1.StatusResponse{TaskCount: 1, Run: &v1.Run{Id: "a-1", State: "failed", Error: "why", Tasks: map[string]*v1.Task{
			"t": {State: "failed", Result: &v1.TaskResult{Stdout: strings.Repeat("x", bytes)}},
		}}}
		kept := workflowResult(status)
		if proto.Equal(kept, status) != whole || kept.GetRun().GetError() != "why" || kept.GetTaskCount() != 1 {
			t.Errorf("of %d bytes of output: %v", bytes, kept)
		}
	}
}
