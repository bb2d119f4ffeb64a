package web

import (
	"context"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/dev/servicetest"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// fakeTask makes the services return a task of run ci-1.
func fakeTask(f *servicetest.Fake, name string, task *v1.Task) {
	servicetest.Answer(f, switchyardv1connect.RunServiceGetRunTaskProcedure, func(_ context.Context, req *v1.GetRunTaskRequest) (*v1.GetRunTaskResponse, error) {
		if req.GetTask() != name {
			return nil, connect.NewError(connect.CodeNotFound, context.Canceled)
		}
		return &v1.GetRunTaskResponse{Task: task}, nil
	})
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceGetRunProcedure, &v1.GetRunResponse{Run: &v1.Run{
		Id: "ci-1", State: v1.RunRunning, Tasks: map[string]*v1.Task{name: task, "fetch": {State: v1.TaskCompleted, CompletedAt: before(time.Minute)}},
	}})
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceGetRunDefinitionProcedure, &v1.GetRunDefinitionResponse{Definition: &v1.Definition{
		Tasks: map[string]*v1.TaskDefinition{name: {Type: v1.TypeShell, When: "gpu-lock"}},
	}})
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceListRunEventsProcedure, &v1.ListRunEventsResponse{Items: []*v1.Event{
		{Task: name, Event: v1.EventAssigned, Node: "n-1", Detail: "score 87.3: cpu 29.1, tasks -5.0", At: before(time.Minute)},
	}})
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceListRunLogsProcedure, &v1.ListRunLogsResponse{Items: []*v1.LogLine{
		{Task: name, Stream: "stdout", Text: "\x1b[32mcompiling\x1b[0m <b>", Time: before(time.Minute)},
		{Task: name, Stream: "stderr", Text: "warn\u202eing", Time: before(time.Minute)},
		{Task: name, Notice: true, Text: "the node is back", Time: before(time.Minute)},
	}})
}

func TestTaskShowsAttemptsReasonsResultAndLog(t *testing.T) {
	patiently(t, taskShowsAttemptsReasonsResultAndLog)
}

func taskShowsAttemptsReasonsResultAndLog(t *testing.T) {
	f := &servicetest.Fake{}
	output, err := structpb.NewStruct(map[string]any{"big": strings.Repeat("x", maxObject), "html": "<i>"})
	if err != nil {
		t.Fatal(err)
	}
	fakeTask(f, "build", &v1.Task{
		State: v1.TaskFailed, Reason: v1.ReasonExitCode, Type: v1.TypeShell, Node: "n-1", Attempt: 1, Error: hostile, DependsOn: []string{"fetch"},
		StartedAt: before(time.Minute), CompletedAt: before(time.Second),
		Attempts: []*v1.Attempt{
			{Attempt: 0, Node: "n-2", State: v1.TaskLost, Reason: v1.ReasonNodeLost, ExitCode: -1},
			{Attempt: 1, Node: "n-1", State: v1.TaskFailed, Reason: v1.ReasonExitCode, ExitCode: 2, Gpus: []int32{0, 3}, NumaNode: proto.Int32(1), Container: "abc"},
		},
		Result: &v1.TaskResult{ExitCode: 2, CpuSeconds: 1.5, PeakMemoryMb: 200, Output: output, Stderr: "\x1b[31mbad\x1b[0m", Agent: &v1.AgentUsage{Model: "m-1", Turns: 3, CostUsd: 0.25}},
	})
	page := newVisitor(t, f, v1.RoleUser).get("/ui/runs/ci-1/tasks/build")
	mustBeHarmless(t, page)
	mustContain(t, page.text("#task-head"), "Task build", "failed")
	mustContain(t, page.text("#task-why"), "Why this node", "n-1", "87.3", "cpu", "29.1", "-5.0")
	mustContain(t, page.text("#task-attempts"), "n-2", "lost", "2", "GPU 0, 3", "NUMA 1", "abc")
	mustContain(t, page.text("#task-parents"), "fetch", "completed")
	mustContain(t, page.text("#task-result"), "1.5 s", "200 MiB", "m-1", "3 turns", "$0.2500", "Cut after 64 KiB.", "bad")
	mustContain(t, page.text("#task-definition"), "gpu-lock")
	mustContain(t, page.text("#log"), "compiling <b>", "err warn <U+202E> ing", "switchyard the node is back")
	if got := len(servicetest.Requests[v1.ExplainTaskRequest](f)); got != 0 {
		t.Errorf("the placement queue was asked %d times about a task that has ended", got)
	}
	if len(page.all("#log ol .c2")) != 1 || len(page.all("#log li.err")) != 1 {
		t.Errorf("the log has no colour, or no mark of errors:\n%s", page.text("#log"))
	}
}

// TestTaskThatWasStartedAgainLeadsToEachStart checks that the page of a task that was started again under the same number shows the
// first start and leads to its output.
func TestTaskThatWasStartedAgainLeadsToEachStart(t *testing.T) {
	patiently(t, func(t *testing.T) {
		f := &servicetest.Fake{}
		fakeTask(f, "train", &v1.Task{
			State: v1.TaskRunning, Type: v1.TypeShell, Node: "n-1", StartedAt: before(time.Second),
			Attempts: []*v1.Attempt{{Node: "n-2", State: v1.AttemptMoved, Reason: v1.ReasonLeaseLost, Error: "the control plane was away", ExitCode: -1}},
		})
		page := newVisitor(t, f, v1.RoleUser).get("/ui/runs/ci-1/tasks/train")
		mustContain(t, page.text("#task-attempts"), "n-1", "running", "n-2", "moved", "the control plane was away")
		if got := page.link("attempt 0"); got != "/ui/runs/ci-1/tasks/train?attempt=0#log" {
			t.Errorf("the output of all starts is at %q", got)
		}
	})
}

func TestWaitingTaskShowsWhyEachNodeIsRuledOut(t *testing.T) {
	patiently(t, waitingTaskShowsWhyEachNodeIsRuledOut)
}

func waitingTaskShowsWhyEachNodeIsRuledOut(t *testing.T) {
	f := &servicetest.Fake{}
	fakeTask(f, "train", &v1.Task{State: v1.TaskQueued, Type: v1.TypeShell, Error: "0 of 2 nodes fit"})
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceExplainTaskProcedure, &v1.ExplainTaskResponse{
		Reason: "no node has 8 free GPUs", Nodes: []*v1.NodeVerdict{
			{Name: "n-1", Reasons: []string{"it has 4 GPUs", hostile}},
			{Name: "n-2", Feasible: true, Score: 75, Parts: []*v1.ScorePart{{Name: "cpu", Value: 30}, {Name: "disk", Value: 45}}},
		},
	})
	page := newVisitor(t, f, v1.RoleUser).get("/ui/runs/ci-1/tasks/train")
	mustBeHarmless(t, page)
	mustContain(t, page.text("#task-why"), "Why it waits", "no node has 8 free GPUs", "it has 4 GPUs", "75.0", "cpu 30.0", "disk 45.0")
}

func TestFannedOutTaskListsItsInstances(t *testing.T) { patiently(t, fannedOutTaskListsItsInstances) }

func fannedOutTaskListsItsInstances(t *testing.T) {
	f := &servicetest.Fake{}
	fakeTask(f, "each", &v1.Task{State: v1.TaskRunning, Type: v1.TypeShell, Count: proto.Int32(250), Counts: map[string]int32{v1.TaskRunning: 50, v1.TaskFailed: 200}, Notice: "each[3]: node n-1 has been silent"})
	servicetest.AnswerWith(f, switchyardv1connect.RunServiceListInstancesProcedure, &v1.ListInstancesResponse{
		Items: []*v1.Instance{{Index: 7, State: v1.TaskFailed, Item: hostile, Node: "n-1"}}, NextPageToken: "more",
	})
	page := newVisitor(t, f, v1.RoleViewer).get("/ui/runs/ci-1/tasks/each?state=failed")
	mustBeHarmless(t, page)
	mustContain(t, page.text("#instance-tabs"), "all 250", "running 50", "failed 200")
	mustContain(t, page.text("#task-why"), "each[3]: node n-1 has been silent")
	if got := page.link("7"); got != "/ui/runs/ci-1/tasks/each%5B7%5D" {
		t.Errorf("the instance leads to %q", got)
	}
	if got := page.link("Next page"); got != "/ui/runs/ci-1/tasks/each?page=more&state=failed" {
		t.Errorf("the next page is %q", got)
	}
	if len(page.all("#log")) > 0 || len(page.all("button[disabled]")) == 0 {
		t.Error("a fan-out has one log, or a viewer may steer it")
	}
}

func TestLogThatIsReadTooSlowlyCanBeTriedAgain(t *testing.T) {
	patiently(t, logThatIsReadTooSlowlyCanBeTriedAgain)
}

func logThatIsReadTooSlowlyCanBeTriedAgain(t *testing.T) {
	f := &servicetest.Fake{}
	fakeTask(f, "build", &v1.Task{State: v1.TaskRunning, Type: v1.TypeShell, Node: "n-1", Workload: &v1.Workload{Pid: 4711}})
	servicetest.Answer(f, switchyardv1connect.RunServiceListRunLogsProcedure, func(ctx context.Context, _ *v1.ListRunLogsRequest) (*v1.ListRunLogsResponse, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	page := newVisitor(t, f, v1.RoleViewer).get("/ui/runs/ci-1/tasks/build?stream=stderr")
	mustBeHarmless(t, page)
	mustContain(t, page.text("#log"), "the log could not be read in time")
	mustContain(t, page.text("#task-attempts"), "process 4711")
	if got := page.link("Try again"); got != "/ui/runs/ci-1/tasks/build?stream=stderr" {
		t.Errorf("another try is at %q", got)
	}
}
