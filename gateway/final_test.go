package gateway

import (
	"strings"
	"testing"

	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// TestGetRunShowsEachKindOfEnd reads runs that ended in each possible way.
func TestGetRunShowsEachKindOfEnd(t *testing.T) {
	t.Parallel()
	f := start(t)
	for _, test := range []struct {
		end                  string
		state, reason, error string
		test                 string // state of the task that had not ended
	}{
		{"completed", "completed", "", "", "cancelled"},
		{"failed", "failed", "task_failed", "build failed", "cancelled"},
		{"cancelled", "cancelled", "", "build failed", "cancelled"},
		{"bare", "failed", "system", "it broke", "cancelled"},
		{"terminated", "failed", "terminated", "somebody did", "cancelled"},
	} {
		t.Run(test.end, func(t *testing.T) {
			id := f.submit(t, "ends")
			signal(t, id, setSignal, &v1.StatusResponse{Run: &v1.Run{
				Error: map[bool]string{true: "build failed"}[test.end == "failed" || test.end == "cancelled"],
				Tasks: map[string]*v1.Task{"build": {State: "failed", Result: &v1.TaskResult{ExitCode: 1}}},
			}})
			if test.end == "terminated" {
				eventually(t, "build has failed", func() bool { return f.get(t, id).GetTasks()["build"].GetState() == "failed" })
				if err := temporalClient.TerminateWorkflow(t.Context(), id, "", "somebody did"); err != nil {
					t.Fatal(err)
				}
			} else {
				end(t, id, test.end)
			}
			run := f.get(t, id)
			if run.GetState() != test.state || run.GetReason() != test.reason || !strings.Contains(run.GetError(), test.error) {
				t.Errorf("the run is %s, %q: %q", run.GetState(), run.GetReason(), run.GetError())
			}
			if run.GetCompletedAt() == nil || run.GetId() != id || run.GetName() != "ends" {
				t.Errorf("the run is %v", run)
			}
			build := run.GetTasks()["build"]
			if build.GetState() != "failed" || build.GetResult().GetExitCode() != 1 {
				t.Errorf("build is %v", build)
			}
			if got := run.GetTasks()["test"]; got.GetState() != test.test || got.GetReason() != test.reason {
				t.Errorf("test is %v", got)
			}
		})
	}
}

// TestLargeFinalStatusIsReadFromTheStore reads a run whose status is too large for Temporal.
func TestLargeFinalStatusIsReadFromTheStore(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "large")
	kept := &v1.StatusResponse{
		Run: &v1.Run{Id: id, Name: "large", State: "completed", Tasks: map[string]*v1.Task{
			"build": {State: "completed", Result: &v1.TaskResult{}}, "test": {State: "skipped"},
		}},
		TaskCount: 2,
	}
	if err := f.config.Store.PutMessage(t.Context(), storekey.Status(id, 0), kept); err != nil {
		t.Fatal(err)
	}
	end(t, id, "large")
	run := f.get(t, id)
	if run.GetState() != "completed" || run.GetTasks()["test"].GetState() != "skipped" {
		t.Errorf("the run is %v", run)
	}
	// Without the stored status, the workflow still knows the states of the tasks that it has not dropped.
	lost := f.submit(t, "lost")
	end(t, lost, "large")
	if run := f.get(t, lost); run.GetState() != "completed" {
		t.Errorf("the run is %v", run)
	}
}

// TestRunTerminatedBeforeItsFirstTaskIsShown reads a run that was terminated before any worker picked it up.
func TestRunTerminatedBeforeItsFirstTaskIsShown(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := names.NewRunID("unheard")
	def := &v1.Definition{Name: "unheard", Tasks: map[string]*v1.TaskDefinition{"a": {Type: "shell"}, "b": {Type: "shell", DependsOn: []string{"a"}}}}
	_, err := temporalClient.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: "nobody"},
		names.RunWorkflow, &v1.RunInput{Definition: def})
	if err != nil {
		t.Fatal(err)
	}
	if err := temporalClient.TerminateWorkflow(t.Context(), id, "", "gone"); err != nil {
		t.Fatal(err)
	}
	run := f.get(t, id)
	want := &v1.Task{State: "cancelled", Reason: "terminated", Type: "shell", DependsOn: []string{"a"}}
	got := proto.CloneOf(run.GetTasks()["b"])
	got.Result, got.CreatedAt, got.CompletedAt = nil, nil, nil
	if run.GetState() != "failed" || !proto.Equal(got, want) {
		t.Errorf("the run is %v", run)
	}
}
