package gateway

import (
	"testing"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/phrase"
)

// TestExplainTaskCoversEachState explains tasks in each of their states.
func TestExplainTaskCoversEachState(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submitDocument(t, `
name: explained
tasks:
  build: { type: shell, spec: { command: make }, constraints: { nodeLabels: [x, y] } }
  test: { type: shell, spec: { command: test }, dependsOn: [build] }
  skipped: { type: shell, spec: { command: test }, dependsOn: [build, test] }
`)
	explain := func(task string) *v1.ExplainTaskResponse {
		t.Helper()
		return answer(t, f.client.ExplainTask, &v1.ExplainTaskRequest{Id: id, Task: task})
	}
	check := func(task, state, chosen, reason string) {
		t.Helper()
		got := explain(task)
		if got.GetTask() != task || got.GetState() != state || got.GetChosen() != chosen || got.GetReason() != reason {
			t.Errorf("%s is explained by %v", task, got)
		}
		if n := got.GetNodes(); len(n) != 2 || n[0].GetScore() != 87.5 || n[1].GetReasons()[0] != "it is full" {
			t.Errorf("the nodes are %v", n)
		}
	}
	check("test", "pending", "", "waits for build")
	holder := f.submitDocument(t, "name: holder\ntasks: { build: { type: shell, spec: { command: make } } }")
	set(t, holder, "build", 1, &v1.Task{State: "running", Node: "b", Notice: "node b has been silent"})
	lock := phrase.LockWait("db", []string{"build of " + holder, "2 more"})
	for _, step := range []struct {
		claim          int32
		shown          *v1.Task
		chosen, reason string
	}{
		{3, &v1.Task{State: "queued", Type: "shell"}, "", "build#3 of type shell, 2 labels"},
		{3, &v1.Task{State: "queued", Type: "shell", Error: "waits for the lock x"}, "", "waits for the lock x"},
		{3, &v1.Task{State: "queued", Type: "shell", Error: lock}, "", lock + "; build of " + holder + ": node b has been silent"},
		{inQueue, &v1.Task{State: "queued", Type: "shell", Error: "0 of 2 nodes fit"}, "", "build#77 of type shell, 2 labels"},
		{3, &v1.Task{State: "queued", Type: "shell", Held: true, Error: "by ann: not yet"}, "", "is held back: by ann: not yet"},
		{4, &v1.Task{State: "assigned", Node: "a"}, "a", "build#4 of type shell, 2 labels"},
	} {
		set(t, id, "build", step.claim, step.shown)
		check("build", step.shown.GetState(), step.chosen, step.reason)
	}
	signal(t, id, eventsSignal, &historyv1.EventsResponse{Events: []*v1.Event{
		{Task: "build", Event: "assigned", Detail: "score 3: old", Node: "b"}, {Task: "build", Event: "assigned", Detail: "score 5: cpu 5", Node: "a"},
		{Task: "build", Event: "completed", Detail: "well"}, {Task: "test", Event: "assigned", Detail: "another task's"},
	}})
	check("build", "assigned", "a", "score 5: cpu 5")
	set(t, id, "build", 4, &v1.Task{State: "completed", Node: "a", CompletedAt: timestamppb.Now()})
	check("build", "completed", "a", "score 5: cpu 5")

	// A task that ended before its placement is explained by its parents, not by nodes.
	set(t, id, "build", 4, &v1.Task{State: "failed", Reason: "exit_code", Error: "exit code 2", Node: "a"})
	for _, reason := range []string{v1.ReasonUpstream, v1.ReasonWhen, v1.ReasonCondition, v1.ReasonConditionError, v1.ReasonHalt} {
		state := v1.TaskSkipped
		if reason == v1.ReasonConditionError {
			state = v1.TaskFailed
		}
		set(t, id, "skipped", 0, &v1.Task{State: state, Reason: reason, Error: "why", Type: "shell", DependsOn: []string{"build", "test"}})
		got := explain("skipped")
		if got.GetState() != state || got.GetReason() != "why" || len(got.GetNodes()) > 0 {
			t.Errorf("%s: %v", reason, got)
		}
		want := []*v1.ParentEnd{{Task: "build", State: "failed", Reason: "exit_code: exit code 2"}, {Task: "test", State: "pending"}}
		if reason == v1.ReasonHalt {
			want = nil
		}
		if diff := cmp.Diff(want, got.GetParents(), protocmp.Transform()); diff != "" {
			t.Errorf("%s: parents (-want +got):\n%s", reason, diff)
		}
	}
	set(t, id, "skipped", 0, &v1.Task{State: "failed", Reason: v1.ReasonPlacementTimeout, Error: "no node fits", Type: "shell"})
	check("skipped", "failed", "", "no node fits")
	const text = "waits: the run has reached the limit of 500 open child workflows"
	set(t, id, "test", 0, &v1.Task{State: "running", Type: "shell", Error: text, Count: proto.Int32(3), Counts: map[string]int32{"pending": 3}})
	if got := explain("test"); got.GetReason() != text {
		t.Errorf("a fan-out that waits for other children of its run: %v", got)
	}
	for _, step := range []struct {
		counts    map[string]int32
		instances []*v1.Instance
		reason    string
	}{
		{map[string]int32{"assigned": 1, "queued": 1}, nil, "test#0 of type shell, 0 labels"},
		{map[string]int32{"assigned": 1, "completed": 1}, nil, ""},
		{map[string]int32{"assigned": 2}, []*v1.Instance{{State: "assigned", Node: "b", Notice: "node b has been silent"}}, "test[0]: node b has been silent"},
	} {
		set(t, id, "test", 0, &v1.Task{State: "running", Type: "shell", Count: proto.Int32(2), Counts: step.counts, Instances: step.instances})
		check("test", "running", "", step.reason)
	}
	refused(t, "a task that is not there", f.client.ExplainTask, &v1.ExplainTaskRequest{Id: id, Task: "biuld"}, connect.CodeNotFound)
}
