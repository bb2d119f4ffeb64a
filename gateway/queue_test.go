package gateway

import (
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// TestQueueGroupsWhatWaits covers tasks and instances of two runs that wait for several reasons.
func TestQueueGroupsWhatWaits(t *testing.T) {
	t.Parallel()
	f := startConfigured(t, "mem://", Config{Nodes: &fakeNodes{nodes: map[string]*v1.Node{
		"n1": {Name: "n1", State: v1.NodeActive, MaxParallel: 4, Running: 3, Cores: &v1.NodeAmount{Total: 8, Free: 1}, MemoryMb: &v1.NodeAmount{Total: 4096, Free: 512}},
		"n2": {Name: "n2", State: v1.NodeOffline, MaxParallel: 4, Cores: &v1.NodeAmount{Total: 8, Free: 8}},
	}}})
	one := f.submitDocument(t, `
name: waits-one
tasks:
  big: { type: shell, priority: 7, spec: { command: "true" }, resources: { cores: 2, memoryMb: 1024 }, constraints: { nodeLabels: [gpu] } }
  each: { type: shell, parallel: 2, spec: { command: "true" } }
  again: { type: shell, spec: { command: "true" } }
`, ofBatch("waits"))
	two := f.submitDocument(t, `
name: waits-two
tasks:
  big: { type: shell, spec: { command: "true" }, resources: { cores: 2, memoryMb: 1024 }, constraints: { nodeLabels: [gpu] } }
  locked: { type: shell, spec: { command: "true" } }
`, ofBatch("waits"))
	at := func(minutes int) *timestamppb.Timestamp {
		return timestamppb.New(time.Date(2026, 3, 14, 15, minutes, 0, 0, time.UTC))
	}
	later := timestamppb.New(time.Now().Add(time.Hour).Truncate(time.Second))
	const lock = "waits for the lock db, held by other-1"
	queued := func(run, task string, shown *v1.Task) {
		t.Helper()
		shown.State, shown.Type = v1.TaskQueued, v1.TypeShell
		set(t, run, task, 1, shown)
	}
	queued(one, "big", &v1.Task{QueuedAt: at(3), Error: "0 of 1 nodes fit: n1 lacks label gpu"})
	queued(two, "big", &v1.Task{QueuedAt: at(1), Error: "0 of 1 nodes have 2 cores free: n1 1"})
	queued(two, "locked", &v1.Task{QueuedAt: at(5), Error: lock})
	queued(one, "again", &v1.Task{Attempt: 1, Reason: "exit_code", Error: "exit code 3", ScheduledAfter: later})
	set(t, one, "each", 0, &v1.Task{State: "running", Type: "shell", Count: proto.Int32(2), Counts: map[string]int32{"running": 1, "queued": 1}, Instances: []*v1.Instance{
		{Index: 0, State: "running", Node: "n1"}, {Index: 1, State: "queued", QueuedAt: at(0), Error: "0 of 1 nodes have a free slot"},
	}})

	tasks := dialService(t, f, switchyardv1connect.NewTaskServiceClient, "")
	get := func(req *v1.GetQueueRequest) *v1.GetQueueResponse {
		t.Helper()
		return answer(t, tasks.GetQueue, req)
	}
	small := &v1.TaskDemand{Cores: 1}
	big := &v1.TaskDemand{Cores: 2, MemoryMb: 1024, Constraints: []string{"label gpu"}}
	example := func(run, workflow, task, reason, text string, queued *timestamppb.Timestamp, priority int32, demand *v1.TaskDemand) *v1.ListedTask {
		return &v1.ListedTask{
			Run: run, Workflow: workflow, Task: task, Type: "shell", State: "queued", Reason: reason, Error: text, QueuedAt: queued, Priority: &priority, Demand: demand,
		}
	}
	again := example(one, "waits-one", "again", "back_off", "exit code 3", nil, 0, small)
	again.Attempt, again.NotBefore = 1, later
	want := &v1.GetQueueResponse{
		Tasks: 5, Runs: 2,
		Slots: &v1.QueueAmount{Asked: 3, Free: 1, Total: 4}, Cores: &v1.QueueAmount{Asked: 5, Free: 1, Total: 8},
		MemoryMb: &v1.QueueAmount{Asked: 2048, Free: 512, Total: 4096}, Gpus: &v1.QueueAmount{},
		Groups: []*v1.QueueGroup{
			{Reason: "busy", Text: "0 of 1 nodes have 2 cores free: n1 1", Type: "shell", Demand: big, Count: 2, Runs: 2, Priority: 7, OldestQueuedAt: at(1), Examples: []*v1.ListedTask{
				example(two, "waits-two", "big", "busy", "0 of 1 nodes have 2 cores free: n1 1", at(1), 0, big),
				example(one, "waits-one", "big", "busy", "0 of 1 nodes fit: n1 lacks label gpu", at(3), 7, big),
			}},
			{Reason: "busy", Text: "0 of 1 nodes have a free slot", Type: "shell", Demand: small, Count: 1, Runs: 1, OldestQueuedAt: at(0), Examples: []*v1.ListedTask{
				example(one, "waits-one", "each[1]", "busy", "0 of 1 nodes have a free slot", at(0), 0, small),
			}},
			{Reason: "lock", Text: lock, Count: 1, Runs: 1, OldestQueuedAt: at(5), Examples: []*v1.ListedTask{example(two, "waits-two", "locked", "lock", lock, at(5), 0, small)}},
			{Reason: "back_off", Text: "waits for its retry after a failure", Count: 1, Runs: 1, NotBefore: later, Examples: []*v1.ListedTask{again}},
		},
	}
	var got *v1.GetQueueResponse
	eventually(t, "the queue shows both runs", func() bool { got = get(&v1.GetQueueRequest{Batch: "waits"}); return got.GetTasks() == want.GetTasks() })
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("the queue (-want +got):\n%s", diff)
	}
	if got := get(&v1.GetQueueRequest{Workflow: "waits-one", Batch: "waits"}); got.GetTasks() != 3 {
		t.Errorf("of one workflow it is %v", got)
	}
	if listed := answer(t, tasks.ListTasks, &v1.ListTasksRequest{Run: one, State: "queued", PageSize: 1}).GetItems(); len(listed) != 1 || !proto.Equal(listed[0], again) {
		t.Errorf("the list shows %v", listed)
	}
	refused(t, "an unknown run", tasks.GetQueue, &v1.GetQueueRequest{Run: "no-such-run"}, connect.CodeNotFound, "no-such-run")
	set(t, two, "big", 1, &v1.Task{State: "running", Type: "shell", Node: "n1"})
	signal(t, two, setSignal, &historyv1.StatusResponse{Run: &v1.Run{State: v1.RunPaused, Tasks: map[string]*v1.Task{}}})
	eventually(t, "a paused run says so", func() bool {
		got = get(&v1.GetQueueRequest{Run: two})
		return got.GetTasks() == 1 && len(got.GetGroups()) == 1 && got.GetGroups()[0].GetReason() == "paused" && got.GetGroups()[0].GetDemand() == nil
	})
	end(t, two, "failed")
	if got := get(&v1.GetQueueRequest{Run: two}); got.GetTasks() != 0 || len(got.GetGroups()) > 0 {
		t.Errorf("of a run that has ended it is %v", got)
	}
}
