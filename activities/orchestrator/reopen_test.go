package orchestrator

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// endedRun returns the final status of a run with one task that has a stored result, and others without.
func endedRun(id string, generation int32, others int) *historyv1.StatusResponse {
	s := &historyv1.StatusResponse{
		Revision: 55, TaskCount: int32(others + 1), Claims: map[string]int32{"big": 7}, Records: map[string]string{"big": "key"},
		Run: &v1.Run{
			Id: id, State: "failed", Generation: generation, CreatedAt: timestamppb.Now(), Context: &structpb.Struct{},
			Tasks: map[string]*v1.Task{"big": {
				State: "completed", Type: "shell", DependsOn: []string{"t0"}, Node: "n",
				Result: &v1.TaskResult{ExitCode: 3, Stdout: "the end of it", Output: &structpb.Struct{}}, Attempts: []*v1.Attempt{{Claim: 7}},
			}},
		},
	}
	for i := range others {
		s.Run.Tasks[fmt.Sprintf("t%d", i)] = &v1.Task{State: "dead_letter", Error: strings.Repeat("e", 100), Result: &v1.TaskResult{}}
	}
	return s
}

// Reopen returns the final state of a run, inline or in stored parts, without what the definition and the records already
// contain.
func TestReopen(t *testing.T) {
	t.Parallel()
	c := newControl(t)
	for name, others := range map[string]int{"small": 3, "large": 4000} {
		id := name + "-1"
		status := endedRun(id, 2, others)
		if _, err := c.SaveStatus(t.Context(), status, nil); err != nil {
			t.Fatal(err)
		}
		runState, err := c.Reopen(t.Context(), &historyv1.ReopenRequest{RunId: id, Generation: 3})
		if err != nil {
			t.Fatal(err)
		}
		if (len(runState.GetStored()) > 0) != (name == "large") || proto.Size(runState) > maxReopenedBytes || runState.GetRevision() != 55 || runState.GetCancelled() {
			t.Errorf("%s: %d parts, %d bytes, revision %d", name, len(runState.GetStored()), proto.Size(runState), runState.GetRevision())
		}
		for _, key := range runState.GetStored() {
			part, _ := loadState(t, c, key)
			proto.Merge(runState, part)
		}
		big := runState.GetTasks()["big"]
		want := &historyv1.TaskState{Claim: 7, Record: "key", Task: &v1.Task{
			State: "completed", Node: "n", Result: &v1.TaskResult{ExitCode: 3, StdoutTruncated: true, StderrTruncated: true}, Attempts: []*v1.Attempt{{Claim: 7}},
		}}
		if len(runState.GetTasks()) != others+1 || !proto.Equal(big, want) || !proto.Equal(runState.GetCreatedAt(), status.GetRun().GetCreatedAt()) {
			t.Errorf("%s: %d tasks, big is %v, want %v", name, len(runState.GetTasks()), big, want)
		}
	}
	_, err := c.Reopen(t.Context(), &historyv1.ReopenRequest{RunId: "small-1", Generation: 2})
	if app, ok := errors.AsType[*temporal.ApplicationError](err); !ok || !app.NonRetryable() {
		t.Errorf("the status of generation 1 is missing: %v", err)
	}
}
