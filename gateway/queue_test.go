package gateway

import (
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

// TestQueueGroupsWhatWaits covers tasks and instances of two runs that wait for several reasons.
func TestQueueGroupsWhatWaits(t *testing.T) {
	t.Parallel()
	f := startConfigured(t, "mem://", Config{Nodes: &fakeNodes{nodes: map[string]*v1.Node{
		"n1": {Name: "n1", State: v1.NodeActive, MaxParallel: 4, Running: 3, Cores: &v1.NodeAmount{Total: 8, Free: 1}, MemoryMb: &v1.NodeAmount{Total: 4096, Free: 512}},
		"n2": {Name: "n2", State: v1.NodeOffline, MaxParallel: 4, Cores: &v1.NodeAmount{Total: 8, Free: 8}},
	}}})
	const batch = "waits"
	submit := func(text string) string {
		t.Helper()
		res, err := f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: text}, Batch: batch}))
		if err != nil {
			t.Fatal(err)
		}
		terminate(t, res.Msg.GetId())
		return res.Msg.GetId()
	}
	one := submit(`
name: waits-one
tasks:
  big: { type: shell, priority: 7, spec: { command: "true" }, resources: { cores: 2, memoryMb: 1024 }, constraints: { nodeLabels: [gpu] } }
  each: { type: shell, parallel: 4, spec: { command: "true" } }
  locked: { type: shell, spec: { command: "true" } }
  again: { type: shell, spec: { command: "true" } }
  held: { type: shell, spec: { command: "true" } }
  runs: { type: shell, spec: { command: "true" } }
`)
	two := submit(`
name: waits-two
tasks:
  big: { type: shell, spec: { command: "true" }, resources: { cores: 2, memoryMb: 1024 }, constraints: { nodeLabels: [gpu] } }
  locked: { type: shell, spec: { command: "true" } }
`)
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
	queued(one, "locked", &v1.Task{QueuedAt: at(4), Error: lock})
	queued(two, "locked", &v1.Task{QueuedAt: at(5), Error: lock})
	queued(one, "again", &v1.Task{Attempt: 1, Reason: "exit_code", Error: "exit code 3", ScheduledAfter: later})
	queued(one, "held", &v1.Task{Held: true, QueuedAt: at(6), Error: "by ann: not yet"})
	set(t, one, "runs", 1, &v1.Task{State: "running", Type: "shell", Node: "n1"})
	set(t, one, "each", 0, &v1.Task{State: "running", Type: "shell", Count: proto.Int32(4), Counts: map[string]int32{"running": 1, "queued": 3}, Instances: []*v1.Instance{
		{Index: 0, State: "running", Node: "n1"}, {Index: 1, State: "queued", QueuedAt: at(0), Error: "0 of 1 nodes have a free slot"},
		{Index: 2, State: "queued", QueuedAt: at(2)}, {Index: 3, State: "queued", QueuedAt: at(2)},
	}})

	get := func(req *v1.GetQueueRequest) *v1.GetQueueResponse {
		t.Helper()
		res, err := f.tasks(t).GetQueue(t.Context(), connect.NewRequest(req))
		if err != nil {
			t.Fatal(err)
		}
		return res.Msg
	}
	small := &v1.TaskDemand{Cores: 1}
	big := &v1.TaskDemand{Cores: 2, MemoryMb: 1024, Constraints: []string{"label gpu"}}
	example := func(run, task, reason, text string, queued *timestamppb.Timestamp, priority int32, demand *v1.TaskDemand) *v1.ListedTask {
		workflow := "waits-one"
		if run == two {
			workflow = "waits-two"
		}
		return &v1.ListedTask{
			Run: run, Workflow: workflow, Task: task, Type: "shell", State: "queued", Reason: reason, Error: text, QueuedAt: queued, Priority: &priority, Demand: demand,
		}
	}
	again := example(one, "again", "back_off", "exit code 3", nil, 0, small)
	again.Attempt, again.NotBefore = 1, later
	want := &v1.GetQueueResponse{
		Tasks: 9, Runs: 2,
		Slots: &v1.QueueAmount{Asked: 5, Free: 1, Total: 4}, Cores: &v1.QueueAmount{Asked: 7, Free: 1, Total: 8},
		MemoryMb: &v1.QueueAmount{Asked: 2048, Free: 512, Total: 4096}, Gpus: &v1.QueueAmount{},
		Groups: []*v1.QueueGroup{
			{Reason: "busy", Text: "0 of 1 nodes have a free slot", Type: "shell", Demand: small, Count: 3, Runs: 1, OldestQueuedAt: at(0), Examples: []*v1.ListedTask{
				example(one, "each[1]", "busy", "0 of 1 nodes have a free slot", at(0), 0, small),
				example(one, "each[2]", "asking", "", at(2), 0, small), example(one, "each[3]", "asking", "", at(2), 0, small),
			}},
			{Reason: "busy", Text: "0 of 1 nodes have 2 cores free: n1 1", Type: "shell", Demand: big, Count: 2, Runs: 2, Priority: 7, OldestQueuedAt: at(1), Examples: []*v1.ListedTask{
				example(two, "big", "busy", "0 of 1 nodes have 2 cores free: n1 1", at(1), 0, big), example(one, "big", "busy", "0 of 1 nodes fit: n1 lacks label gpu", at(3), 7, big),
			}},
			{Reason: "lock", Text: lock, Count: 2, Runs: 2, OldestQueuedAt: at(4), Examples: []*v1.ListedTask{
				example(one, "locked", "lock", lock, at(4), 0, small), example(two, "locked", "lock", lock, at(5), 0, small),
			}},
			{Reason: "held", Text: "is held back: by ann: not yet", Count: 1, Runs: 1, OldestQueuedAt: at(6), Examples: []*v1.ListedTask{
				{Run: one, Workflow: "waits-one", Task: "held", Type: "shell", State: "queued", Reason: "held", Error: "by ann: not yet", QueuedAt: at(6), Priority: proto.Int32(0), Demand: small},
			}},
			{Reason: "back_off", Text: "waits for its retry after a failure", Count: 1, Runs: 1, NotBefore: later, Examples: []*v1.ListedTask{again}},
		},
	}
	var got *v1.GetQueueResponse
	eventually(t, "the queue shows both runs", func() bool { got = get(&v1.GetQueueRequest{Batch: batch}); return got.GetTasks() == want.GetTasks() })
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("the queue (-want +got):\n%s", diff)
	}
	if got := get(&v1.GetQueueRequest{Run: two}); got.GetTasks() != 2 || got.GetRuns() != 1 || got.GetSlots().GetAsked() != 1 {
		t.Errorf("of one run it is %v", got)
	}
	if got := get(&v1.GetQueueRequest{Workflow: "waits-one", Batch: batch}); got.GetTasks() != 7 {
		t.Errorf("of one workflow it is %v", got)
	}
	listed, err := f.tasks(t).ListTasks(t.Context(), connect.NewRequest(&v1.ListTasksRequest{Run: one, State: "queued", PageSize: 1}))
	if err != nil || len(listed.Msg.GetItems()) != 1 || !proto.Equal(listed.Msg.GetItems()[0], again) {
		t.Errorf("the list shows %v, %v", listed, err)
	}
	rest := f.rest(t, "GET", "/v1/queue?run="+one, "")
	if rest.status != 200 || rest.value["tasks"] != 7.0 {
		t.Errorf("by REST: %d %s", rest.status, rest.text)
	}
	if got := f.rest(t, "GET", "/v1/queue?run=no-such-run", ""); got.status != 404 || !strings.Contains(got.message(), "no-such-run") {
		t.Errorf("an unknown run: %d %s", got.status, got.text)
	}
	set(t, two, "big", 1, &v1.Task{State: "running", Type: "shell", Node: "n1"})
	signal(t, two, setSignal, &v1.StatusResponse{Run: &v1.Run{State: v1.RunPaused, Tasks: map[string]*v1.Task{}}})
	eventually(t, "a paused run says so", func() bool {
		got = get(&v1.GetQueueRequest{Run: two})
		return len(got.GetGroups()) == 1 && got.GetGroups()[0].GetReason() == "paused" && got.GetGroups()[0].GetDemand() == nil
	})
	end(t, two, "failed")
	if got := get(&v1.GetQueueRequest{Run: two}); got.GetTasks() != 0 || len(got.GetGroups()) > 0 {
		t.Errorf("of a run that has ended it is %v", got)
	}
}
