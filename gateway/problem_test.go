package gateway

import (
	"context"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"go.temporal.io/sdk/client"

	"switchyard/activities/store/storekey"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// TestProblemOfRunWhoseWorkflowTaskFails covers a run that no longer answers. It is shown with its last known status
// and its problem, and a forced cancellation ends it along with everything below it.
func TestProblemOfRunWhoseWorkflowTaskFails(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "wedged")
	set(t, id, "build", 1, &v1.Task{State: "completed", Type: "shell"})
	child, grandchild := id+"x", id+"y"
	signal(t, id, childSignal, child)
	eventually(t, "the child is open", func() bool {
		return temporalClient.SignalWorkflow(t.Context(), child, "", childSignal, grandchild) == nil
	})
	eventually(t, "the grandchild is open", func() bool { return f.isOpen(t, grandchild) })
	token := startAttempt(t, child, child, "test", 1)
	if err := temporalClient.RecordActivityHeartbeat(t.Context(), token, &v1.ExecuteProgress{Spawned: true, Claim: 1}); err != nil {
		t.Fatal(err)
	}

	w := f.watch(t, id)
	w.until(t, "build has completed", func() bool { return w.run.GetTasks()["build"].GetState() == "completed" })
	signal(t, id, panicSignal, "out of order")
	w.until(t, "the watched run has a problem", func() bool { return strings.Contains(w.run.GetProblem(), "out of order") })
	run := f.get(t, id)
	if !strings.Contains(run.GetProblem(), "out of order") || run.GetState() != "running" || len(run.GetTasks()) != 2 {
		t.Errorf("the run is shown as %v", run)
	}
	eventually(t, "lists show the problem", func() bool {
		res, err := f.client.ListRuns(t.Context(), connect.NewRequest(&v1.ListRunsRequest{Name: "wedged"}))
		return err == nil && slices.ContainsFunc(res.Msg.GetItems(), func(run *v1.Run) bool { return run.GetId() == id && run.GetProblem() != "" })
	})

	res, err := f.client.CancelRun(t.Context(), connect.NewRequest(&v1.CancelRunRequest{Id: id, Reason: "enough", Force: true}))
	if err != nil {
		t.Fatal(err)
	}
	if res.Msg.GetId() != id || res.Msg.GetChildren() != 2 || res.Msg.GetAttempts() != 1 {
		t.Errorf("it says that it did %v; want 2 children and 1 attempt", res.Msg)
	}
	for _, ended := range []string{id, child, grandchild} {
		if f.isOpen(t, ended) {
			t.Errorf("%s is still open", ended)
		}
	}
	run = f.get(t, id)
	if run.GetState() != "failed" || run.GetReason() != "terminated" || !strings.HasSuffix(run.GetError(), "ended by force: enough") || run.GetProblem() != "" {
		t.Errorf("the run has ended as %v", run)
	}
	_, err = f.client.CancelRun(t.Context(), connect.NewRequest(&v1.CancelRunRequest{Id: id, Force: true}))
	wantCode(t, "force twice", err, connect.CodeAborted)
}

// TestForceKeepsWhatAHealthyRunHasSaid forcibly ends a run that still answers. Its progress stays known although its
// workflow is no longer queried.
func TestForceKeepsWhatAHealthyRunHasSaid(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "healthy")
	set(t, id, "build", 1, &v1.Task{State: "completed", Type: "shell"})
	f.awaitSettled(t, id)
	if _, err := f.client.CancelRun(t.Context(), connect.NewRequest(&v1.CancelRunRequest{Id: id, Force: true})); err != nil {
		t.Fatal(err)
	}
	kept, err := f.reader.LastStatus(t.Context(), f.describe(t, id))
	if err != nil || kept.GetRun().GetTasks()["build"].GetState() != "completed" {
		t.Errorf("kept %v, %v", kept, err)
	}
	tasks := f.get(t, id).GetTasks()
	if tasks["build"].GetState() != "completed" || tasks["test"].GetState() != "cancelled" {
		t.Errorf("the tasks are %v", tasks)
	}
}

// TestForceTellsRunsOfOneIDApart forcibly ends two runs that had the same id one after the other. The progress of
// the first is not attributed to the second.
func TestForceTellsRunsOfOneIDApart(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := names.NewRunID("again")
	in := &v1.RunInput{Definition: &v1.Definition{Name: "again", Tasks: map[string]*v1.TaskDefinition{"build": {Type: "shell"}}}}
	for _, state := range []string{"completed", "running"} {
		run, err := temporalClient.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: names.ControlQueue}, names.RunWorkflow, in)
		if err != nil {
			t.Fatal(err)
		}
		signal(t, id, setSignal, &v1.StatusResponse{
			Run: &v1.Run{Tasks: map[string]*v1.Task{"build": {State: state, Type: "shell"}}}, Claims: map[string]int32{"build": 1}, Chain: run.GetRunID(),
		})
		f.awaitSettled(t, id)
		if got := f.get(t, id).GetTasks()["build"].GetState(); got != state {
			t.Errorf("build is %s, want %s", got, state)
		}
		if _, err := f.client.CancelRun(t.Context(), connect.NewRequest(&v1.CancelRunRequest{Id: id, Force: true})); err != nil {
			t.Fatal(err)
		}
		kept, err := f.reader.LastStatus(t.Context(), f.describe(t, id))
		if got := kept.GetRun().GetTasks()["build"].GetState(); err != nil || got != state {
			t.Errorf("build is kept as %s, %v; want %s", got, err, state)
		}
		var stored v1.StatusResponse
		if err := f.config.Store.GetMessage(t.Context(), storekey.Status(names.Home(id, run.GetRunID()), 0), &stored); err != nil {
			t.Error(err)
		}
	}
}

// awaitSettled waits until a gateway has read all that a run has done. A forced cancellation, which does not wait long for an
// answer, then knows the status of the run.
func (f *fixture) awaitSettled(t *testing.T, id string) {
	t.Helper()
	eventually(t, "the gateway has read the whole run", func() bool {
		before := f.describe(t, id)
		f.get(t, id)
		after := f.describe(t, id)
		return after.GetPendingWorkflowTask() == nil &&
			before.GetWorkflowExecutionInfo().GetHistoryLength() == after.GetWorkflowExecutionInfo().GetHistoryLength()
	})
}

func (f *fixture) describe(t *testing.T, id string) *runview.Description {
	t.Helper()
	desc, err := f.reader.Describe(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return desc
}

func (f *fixture) isOpen(t *testing.T, id string) bool {
	t.Helper()
	desc, err := f.reader.Describe(t.Context(), id)
	return err == nil && runview.IsOpen(desc.GetWorkflowExecutionInfo().GetStatus())
}

// TestProblemOfAPartIsShownOnItsRun covers a part of a large fan-out that no longer answers.
func TestProblemOfAPartIsShownOnItsRun(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "parted")
	defer end(t, id, "completed")
	child := names.FanOut{Run: id, Chain: "chain", Task: "each", From: childFrom}.ID()
	_, err := temporalClient.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: child, TaskQueue: names.ControlQueue},
		names.FanOutWorkflow, &v1.RunInput{Partition: &v1.Partition{From: childFrom, To: 7}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = temporalClient.TerminateWorkflow(context.Background(), child, "", "the test is over") }()
	w := f.watch(t, id)
	signal(t, child, panicSignal, "out of order")
	shows := func(run *v1.Run) bool {
		return strings.Contains(run.GetProblem(), "instances from each[") && strings.Contains(run.GetProblem(), "out of order")
	}
	w.until(t, "the watched run has the problem of its part", func() bool { return shows(w.run) })
	if run := f.get(t, id); !shows(run) || run.GetState() != "running" {
		t.Errorf("the run is shown as %v", run)
	}
	eventually(t, "lists show the problem of the part", func() bool {
		res, err := f.client.ListRuns(t.Context(), connect.NewRequest(&v1.ListRunsRequest{Name: "parted"}))
		return err == nil && len(res.Msg.GetItems()) == 1 && strings.HasPrefix(res.Msg.GetItems()[0].GetProblem(), "instances from each[")
	})
}
