package web

import (
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"switchyard/dev/servicetest"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

const (
	getQueue      = switchyardv1connect.TaskServiceGetQueueProcedure
	listTasksCall = switchyardv1connect.TaskServiceListTasksProcedure
)

func someQueue() *v1.GetQueueResponse {
	return &v1.GetQueueResponse{
		Tasks: 14, Runs: 3,
		Groups: []*v1.QueueGroup{
			{
				Reason: v1.WaitBusy, Text: "big: 1 of 2 GPUs free", Type: "container", Demand: &v1.TaskDemand{Cores: 2, MemoryMb: 512, Gpus: 2, NumaNode: proto.Int32(0), Constraints: []string{"label gpu"}},
				Count: 12, Runs: 2, Priority: 7, OldestQueuedAt: before(time.Minute), Examples: []*v1.ListedTask{{Run: "train-1", Task: "fit[3]"}},
			},
			{Reason: v1.WaitImpossible, Text: "no node has label tpu", Type: "shell", Demand: &v1.TaskDemand{Constraints: []string{"label tpu"}}, Count: 1, Runs: 1, Examples: []*v1.ListedTask{{Run: "odd-1", Task: "a"}}},
			{Reason: v1.WaitBackOff, Text: "after a failure", Count: 1, Runs: 1, NotBefore: before(-time.Minute), Examples: []*v1.ListedTask{{Run: "flaky-1", Task: "b"}}},
			{Reason: v1.WaitLock, Text: "lock db is held by x-1", Count: 1, Runs: 1},
		},
		Slots: &v1.QueueAmount{Asked: 13, Free: 6, Total: 8}, Gpus: &v1.QueueAmount{Asked: 24, Free: 1, Total: 2}, Cores: &v1.QueueAmount{Asked: 2, Free: 12, Total: 16}, MemoryMb: &v1.QueueAmount{Asked: 512, Free: 2048, Total: 4096},
		Warnings: []string{"run bad-1 cannot be read"},
	}
}

func TestQueueShowsReasonsAndResources(t *testing.T) { patiently(t, queueShowsReasonsAndResources) }

func queueShowsReasonsAndResources(t *testing.T) {
	f := &servicetest.Fake{}
	servicetest.AnswerWith(f, getQueue, someQueue())
	servicetest.AnswerWith(f, listTasksCall, &v1.ListTasksResponse{Items: []*v1.ListedTask{{Run: "r-1", Task: "ask"}}})
	page := newVisitor(t, f, v1.RoleViewer).get("/ui/queue?workflow=train&run=&batch=b")
	mustBeHarmless(t, page)
	if got := servicetest.Requests[v1.GetQueueRequest](f)[0]; got.GetWorkflow() != "train" || got.GetBatch() != "b" {
		t.Errorf("request %v", got)
	}
	mustContain(t, page.text("#queue-head"), "14 tasks of 3 runs wait to start.", "1 task waits for an approval", "run bad-1 cannot be read")
	groups := page.texts("#queue-node li")
	if len(groups) != 2 {
		t.Fatalf("groups of nodes: %q", groups)
	}
	mustContain(t, groups[0], "busy", "in use", "12 tasks of type container in 2 runs, priority up to 7", "big: 1 of 2 GPUs free", "2 cores, 512 MiB, 2 GPUs, NUMA node 0, label gpu", "For example fit[3] of train-1")
	mustContain(t, groups[1], "impossible", "No node that is online could run them", "no node has label tpu")
	mustContain(t, page.text("#queue-amounts"), "GPUs 24 more than is free 1", "cores 2 12", "memory 0.5 GiB 2 GiB", "slots 13")
	mustContain(t, page.text("#queue-run"), "back_off", "lock", "lock db is held by x-1")
}

func TestEmptyAndUnreadableQueueAreDistinguished(t *testing.T) {
	patiently(t, emptyAndUnreadableQueueAreDistinguished)
}

func emptyAndUnreadableQueueAreDistinguished(t *testing.T) {
	f := &servicetest.Fake{}
	servicetest.AnswerWith(f, getQueue, &v1.GetQueueResponse{})
	servicetest.Refuse(f, listTasksCall, connect.CodeUnavailable, "Temporal is away")
	page := newVisitor(t, f, v1.RoleViewer).get("/ui/queue")
	mustContain(t, page.text("main"), "No task waits to start.", "No task waits for a node.", "No task waits in its run.", "How many tasks wait for an approval is not known", "Temporal is away")
	servicetest.Refuse(f, getQueue, connect.CodeInternal, "no queue")
	mustContain(t, newVisitor(t, f, v1.RoleViewer).get("/ui/queue").text("main"), "The queue is not known: no queue")
}
