package gateway

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/phrase"
)

// TestCommandsReachRunsAndTasks sends each command for a run and for its tasks, first when it applies and then when it no longer
// does.
func TestCommandsReachRunsAndTasks(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "controlled", "a", "b", "c", "d", "e", "f", "g")
	c := f.client
	do(t, c.PauseRun, &v1.PauseRunRequest{Id: id, Reason: "lunch"})
	if run := f.get(t, id); run.GetState() != "paused" || run.GetError() != "lunch" {
		t.Errorf("the run is %v", run)
	}
	refused(t, "pause twice", c.PauseRun, &v1.PauseRunRequest{Id: id}, connect.CodeAborted)
	eventually(t, "lists show it paused", func() bool { return f.listed(t, "controlled", id) == "paused" })
	do(t, c.ResumeRun, &v1.ResumeRunRequest{Id: id})
	eventually(t, "lists show it running", func() bool { return f.listed(t, "controlled", id) == "running" })
	refused(t, "hold an unknown task", c.HoldTask, &v1.HoldTaskRequest{Id: id, Task: "aa"}, connect.CodeNotFound, "did you mean a?")

	do(t, c.HoldTask, &v1.HoldTaskRequest{Id: id, Task: "a", Reason: "not yet"})
	do(t, c.CancelTask, &v1.CancelTaskRequest{Id: id, Task: "b", Reason: "enough"})
	do(t, c.ApproveTask, &v1.ApproveTaskRequest{Id: id, Task: "c", Reason: "well done"})
	do(t, c.RejectTask, &v1.RejectTaskRequest{Id: id, Task: "d", Reason: "no"})
	do(t, c.PauseTask, &v1.PauseTaskRequest{Id: id, Task: "e", Reason: "lunch"})
	do(t, c.KillTask, &v1.KillTaskRequest{Id: id, Task: "f", Reason: "stuck"})
	do(t, c.RestartTask, &v1.RestartTaskRequest{Id: id, Task: "g", Reason: "again"})
	wantTasks := func(want map[string]*v1.Task) {
		t.Helper()
		tasks := f.get(t, id).GetTasks()
		for name, want := range want {
			got := &v1.Task{State: tasks[name].GetState(), Reason: tasks[name].GetReason(), Error: tasks[name].GetError(), Held: tasks[name].GetHeld()}
			if !proto.Equal(got, want) {
				t.Errorf("%s is %v, want %v", name, got, want)
			}
		}
	}
	wantTasks(map[string]*v1.Task{
		"a": {State: "pending", Held: true, Error: "not yet"}, "b": {State: "cancelled", Error: "enough"}, "c": {State: "completed", Error: "well done"},
		"d": {State: "rejected", Error: "no"}, "e": {State: "paused", Reason: "suspended", Error: "lunch"}, "f": {State: "killed", Error: "stuck"},
		"g": {State: "pending", Reason: "restarted", Error: "again"},
	})
	refused(t, "cancel what has ended", c.CancelTask, &v1.CancelTaskRequest{Id: id, Task: "b"}, connect.CodeAborted)
	refused(t, "pause a task twice", c.PauseTask, &v1.PauseTaskRequest{Id: id, Task: "e"}, connect.CodeAborted)
	refused(t, "kill what has ended", c.KillTask, &v1.KillTaskRequest{Id: id, Task: "f"}, connect.CodeAborted)
	do(t, c.ReleaseTask, &v1.ReleaseTaskRequest{Id: id, Task: "a"})
	do(t, c.ResumeTask, &v1.ResumeTaskRequest{Id: id, Task: "e"})
	do(t, c.StopTask, &v1.StopTaskRequest{Id: id, Task: "g", Reason: "done"})
	wantTasks(map[string]*v1.Task{"a": {State: "pending"}, "e": {State: "pending"}, "g": {State: "stopped", Reason: "restarted", Error: "done"}})
	end(t, id, "rejected")
	refused(t, "resume a run that has ended", c.ResumeRun, &v1.ResumeRunRequest{Id: id}, connect.CodeAborted)
	if run := f.get(t, id); run.GetState() != "rejected" || run.GetReason() != "approval" {
		t.Errorf("the run is %s, %s", run.GetState(), run.GetReason())
	}
}

// TestConcurrentCommandsAreLimitedPerRun sends more concurrent requests than a run may have in flight.
func TestConcurrentCommandsAreLimitedPerRun(t *testing.T) {
	t.Parallel()
	f := start(t)
	var tasks []string
	for i := range 40 {
		tasks = append(tasks, fmt.Sprintf("t%d", i))
	}
	id := f.submit(t, "crowded", tasks...)
	var wg sync.WaitGroup
	for _, task := range tasks {
		wg.Go(func() {
			if _, err := f.client.CancelTask(context.WithoutCancel(t.Context()), connect.NewRequest(&v1.CancelTaskRequest{Id: id, Task: task})); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := f.get(t, id).GetTaskCounts(); n["cancelled"] != int32(len(tasks)) {
		t.Errorf("the tasks are %v", n)
	}
}

// continuingClient returns NotFound for the first signals, as for a run that is continuing as new.
type continuingClient struct {
	client.Client
	refusals atomic.Int32
}

func (c *continuingClient) SignalWorkflow(ctx context.Context, id, runID, name string, arg any) error {
	if c.refusals.Add(-1) >= 0 {
		return serviceerror.NewNotFound("workflow execution already completed")
	}
	return c.Client.SignalWorkflow(ctx, id, runID, name, arg)
}

// TestCancelReachesARunThatContinuesAsNew checks that a cancel during continue-as-new reaches the next execution.
// For a run that has ended it fails at once with a conflict.
func TestCancelReachesARunThatContinuesAsNew(t *testing.T) {
	t.Parallel()
	continuing := &continuingClient{Client: temporalClient}
	continuing.refusals.Store(2)
	f := startConfigured(t, "mem://", Config{Client: continuing})
	id := f.submit(t, "continuing")
	do(t, f.client.CancelRun, &v1.CancelRunRequest{Id: id})
	eventually(t, "the run is cancelled", func() bool { return f.get(t, id).GetState() == "cancelled" })
	refused(t, "cancel what has ended", f.client.CancelRun, &v1.CancelRunRequest{Id: id}, connect.CodeAborted)
}

// TestCancelWithoutAnIDNeverEndsFinally checks that the gateway gives no ID to a request without one, which a client may repeat, and
// that the answer says that finally runs.
func TestCancelWithoutAnIDNeverEndsFinally(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submitDocument(t, "name: tidy\ntasks: {build: {type: shell, spec: {command: build}}}\nfinally: {tidy: {type: shell, spec: {command: tidy}}}\n")
	signal(t, id, setSignal, &historyv1.StatusResponse{Run: &v1.Run{Error: phrase.InFinally(v1.RunCompleted, "")}})
	for range 2 {
		if res := do(t, f.client.CancelRun, &v1.CancelRunRequest{Id: id}); !res.GetFinallyRuns() {
			t.Errorf("the answer is %v", res)
		}
	}
	if res := do(t, f.client.CancelRun, &v1.CancelRunRequest{Id: id, Now: true}); res.GetFinallyRuns() {
		t.Errorf("the answer to now is %v", res)
	}
	eventually(t, "now ends finally", func() bool { return f.get(t, id).GetState() == "cancelled" })
}

// TestApproversOfATaskDecide decides about tasks as the submitter, as people whom the task names, and as others, on a gateway that
// requires four eyes.
func TestApproversOfATaskDecide(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir(), func(c *Config) { c.FourEyes = true })
	as := map[string]switchyardv1connect.RunServiceClient{}
	for name, role := range map[string]string{"ann": v1.RoleUser, "bob": v1.RoleUser, "eve": v1.RoleUser, "op": v1.RoleOperator} {
		secret, _ := f.token(t, name, role)
		as[name] = f.dialAs(t, secret)
	}
	f.client = as["ann"]
	id := f.submitDocument(t, "name: ship\ntasks: {a: {type: approval, spec: {approvers: {names: [bob]}}}, b: {type: approval}, c: {type: shell, spec: {command: x}}}")
	for _, task := range []string{"a", "b"} {
		set(t, id, task, 0, &v1.Task{State: "paused", Type: v1.TypeApproval})
	}
	refused(t, "the submitter", as["ann"].ApproveTask, &v1.ApproveTaskRequest{Id: id, Task: "a"}, connect.CodePermissionDenied, "--four-eyes")
	for _, task := range []string{"a", "b", "c", "d"} {
		refused(t, "a stranger", as["eve"].ApproveTask, &v1.ApproveTaskRequest{Id: id, Task: task}, connect.CodeNotFound, "there is no run")
	}
	refused(t, "another task than that with the name", as["bob"].RejectTask, &v1.RejectTaskRequest{Id: id, Task: "b"}, connect.CodeNotFound, "there is no run")
	refused(t, "a prefix", as["bob"].ApproveTask, &v1.ApproveTaskRequest{Id: id[:len(id)-2], Task: "a"}, connect.CodeNotFound, "there is no run")
	do(t, as["bob"].ApproveTask, &v1.ApproveTaskRequest{Id: id, Task: "a"})
	do(t, as["op"].ApproveTask, &v1.ApproveTaskRequest{Id: id, Task: "b"})
	terminate(t, id)
}

// TestLateDecisionLearnsWhoRejectedTheRun approves a run that another person has just rejected.
func TestLateDecisionLearnsWhoRejectedTheRun(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "turned-down", "a")
	signal(t, id, setSignal, &historyv1.StatusResponse{Run: &v1.Run{Error: "rejected by eve: too late"}})
	end(t, id, "rejected")
	refused(t, "approve a rejected run", f.client.ApproveRun, &v1.ApproveRunRequest{Id: id}, connect.CodeAborted, "has already been rejected: rejected by eve: too late")
}
