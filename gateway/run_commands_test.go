package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// TestCommandsReachRunsAndTasks pauses and resumes a run, and holds, releases, cancels, approves and rejects its tasks. It
// uses the name "last", so no other test may start a run meanwhile.
func TestCommandsReachRunsAndTasks(t *testing.T) {
	f := start(t)
	id := f.submit(t, "controlled", "a", "b", "c", "d", "e", "f")
	ctx, c := t.Context(), f.client
	if _, err := c.PauseRun(ctx, connect.NewRequest(&v1.PauseRunRequest{Id: "last", Reason: "lunch"})); err != nil {
		t.Fatal(err)
	}
	if run := f.get(t, id); run.GetState() != "paused" || run.GetError() != "lunch" {
		t.Errorf("the run is %v", run)
	}
	_, err := c.PauseRun(ctx, connect.NewRequest(&v1.PauseRunRequest{Id: id}))
	wantCode(t, "pause twice", err, connect.CodeAborted)
	res, err := http.Post(f.server.URL()+switchyardv1connect.RunServicePauseRunProcedure, "application/json", strings.NewReader(`{"id":"`+id+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Body.Close(); err != nil || res.StatusCode != http.StatusConflict {
		t.Errorf("pause twice over HTTP: status %d, %v", res.StatusCode, err)
	}
	eventually(t, "lists show it paused", func() bool { return f.listed(t, id) == "paused" })
	if _, err := c.ResumeRun(ctx, connect.NewRequest(&v1.ResumeRunRequest{Id: id})); err != nil {
		t.Fatal(err)
	}
	eventually(t, "lists show it running", func() bool { return f.listed(t, id) == "running" })

	if _, err := c.HoldTask(ctx, connect.NewRequest(&v1.HoldTaskRequest{Id: id, Task: "a", Reason: "not yet"})); err != nil {
		t.Fatal(err)
	}
	if task := f.get(t, id).GetTasks()["a"]; !task.GetHeld() || task.GetError() != "not yet" {
		t.Errorf("a is %v", task)
	}
	_, holdErr := c.HoldTask(ctx, connect.NewRequest(&v1.HoldTaskRequest{Id: id, Task: "aa"}))
	wantCode(t, "hold an unknown task", holdErr, connect.CodeNotFound)
	if holdErr == nil || !strings.Contains(holdErr.Error(), "did you mean a?") {
		t.Errorf("the error is %v", holdErr)
	}
	_, releaseErr := c.ReleaseTask(ctx, connect.NewRequest(&v1.ReleaseTaskRequest{Id: id, Task: "a"}))
	_, cancelErr := c.CancelTask(ctx, connect.NewRequest(&v1.CancelTaskRequest{Id: id, Task: "b"}))
	_, approveErr := c.ApproveTask(ctx, connect.NewRequest(&v1.ApproveTaskRequest{Id: id, Task: "c", Reason: "well done"}))
	_, rejectErr := c.RejectTask(ctx, connect.NewRequest(&v1.RejectTaskRequest{Id: id, Task: "d"}))
	if err := errors.Join(releaseErr, cancelErr, approveErr, rejectErr); err != nil {
		t.Fatal(err)
	}
	tasks := f.get(t, id).GetTasks()
	if tasks["a"].GetHeld() || tasks["b"].GetState() != "cancelled" || tasks["c"].GetState() != "completed" || tasks["c"].GetError() != "well done" || tasks["d"].GetState() != "rejected" {
		t.Errorf("the tasks are %v", tasks)
	}
	_, err = c.CancelTask(ctx, connect.NewRequest(&v1.CancelTaskRequest{Id: id, Task: "b"}))
	wantCode(t, "cancel what has ended", err, connect.CodeAborted)
	_, pauseErr := c.PauseTask(ctx, connect.NewRequest(&v1.PauseTaskRequest{Id: id, Task: "e", Reason: "lunch"}))
	if e := f.get(t, id).GetTasks()["e"]; pauseErr != nil || e.GetState() != "paused" || e.GetReason() != "suspended" || e.GetError() != "lunch" {
		t.Errorf("e is %v: %v", e, pauseErr)
	}
	_, err = c.PauseTask(ctx, connect.NewRequest(&v1.PauseTaskRequest{Id: id, Task: "e"}))
	wantCode(t, "pause a task twice", err, connect.CodeAborted)
	_, resumeErr := c.ResumeTask(ctx, connect.NewRequest(&v1.ResumeTaskRequest{Id: id, Task: "e"}))
	_, killErr := c.KillTask(ctx, connect.NewRequest(&v1.KillTaskRequest{Id: id, Task: "f", Reason: "stuck"}))
	tasks = f.get(t, id).GetTasks()
	if resumeErr != nil || killErr != nil || tasks["e"].GetState() != "pending" || tasks["f"].GetState() != "killed" || tasks["f"].GetError() != "stuck" {
		t.Errorf("%v, %v: the tasks are %v", resumeErr, killErr, tasks)
	}
	_, restartErr := c.RestartTask(ctx, connect.NewRequest(&v1.RestartTaskRequest{Id: id, Task: "e"}))
	restarted := f.get(t, id).GetTasks()["e"].GetReason()
	_, stopErr := c.StopTask(ctx, connect.NewRequest(&v1.StopTaskRequest{Id: id, Task: "e", Reason: "done"}))
	if e := f.get(t, id).GetTasks()["e"]; restartErr != nil || stopErr != nil || restarted != "restarted" || e.GetState() != "stopped" || e.GetError() != "done" {
		t.Errorf("%v, %v: e was %s and is %v", restartErr, stopErr, restarted, e)
	}
	_, err = c.KillTask(ctx, connect.NewRequest(&v1.KillTaskRequest{Id: id, Task: "f"}))
	wantCode(t, "kill what has ended", err, connect.CodeAborted)
	end(t, id, "rejected")
	_, err = c.ResumeRun(ctx, connect.NewRequest(&v1.ResumeRunRequest{Id: id}))
	wantCode(t, "resume a run that has ended", err, connect.CodeAborted)
	_, err = c.ResumeRun(ctx, connect.NewRequest(&v1.ResumeRunRequest{Id: "nope-1"}))
	wantCode(t, "resume an unknown run", err, connect.CodeNotFound)

	if run := f.get(t, id); run.GetState() != "rejected" || run.GetReason() != "approval" {
		t.Errorf("the run is %s, %s", run.GetState(), run.GetReason())
	}
	for state, want := range map[string]int{"rejected": 1, "failed": 0} {
		eventually(t, "it is listed as rejected alone", func() bool {
			ids, _ := f.list(t, &v1.ListRunsRequest{Name: "controlled", State: state})
			return len(ids) == want
		})
	}
}

// listed returns the state in which lists show a run.
func (f *fixture) listed(t *testing.T, id string) string {
	t.Helper()
	res := answer(t, f.client.ListRuns, &v1.ListRunsRequest{PageSize: 1000}) // includes the runs of other tests
	for _, run := range res.GetItems() {
		if run.GetId() == id {
			return run.GetState()
		}
	}
	return ""
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
	defer end(t, id, "completed")
	var wg sync.WaitGroup
	for _, task := range tasks {
		wg.Go(func() {
			if _, err := f.client.CancelTask(context.WithoutCancel(t.Context()), connect.NewRequest(&v1.CancelTaskRequest{Id: id, Task: task})); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for name, task := range f.get(t, id).GetTasks() {
		if task.GetState() != "cancelled" || !slices.Contains(tasks, name) {
			t.Errorf("%s is %s", name, task.GetState())
		}
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
	if _, err := f.client.CancelRun(t.Context(), connect.NewRequest(&v1.CancelRunRequest{Id: id})); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the run is cancelled", func() bool { return f.get(t, id).GetState() == "cancelled" })
	_, err := f.client.CancelRun(t.Context(), connect.NewRequest(&v1.CancelRunRequest{Id: id}))
	wantCode(t, "cancel what has ended", err, connect.CodeAborted)
}
