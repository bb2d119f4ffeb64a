package gateway

import (
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store/storekey"
	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// stuckAfter is the time-out of the workflow tasks of runs that get stuck. A run has a problem after a few of them.
const stuckAfter = time.Second

// TestStuckRunIsShownAndEndedByForce covers a run that no longer answers. It is shown with its last known status and its problem,
// its stored events are listed with those of other runs, and a forced cancellation ends it along with everything below it.
func TestStuckRunIsShownAndEndedByForce(t *testing.T) {
	t.Parallel()
	f := start(t)
	const node = "stuck-node"
	known := visibility.Started("wedged", v1.TriggerSubmit, time.Now())
	known.Nodes = []string{node}
	healthy, id := startedWith(t, known), names.NewRunID("wedged")
	execute(t, client.StartWorkflowOptions{ID: id, TypedSearchAttributes: known.Typed(), WorkflowTaskTimeout: stuckAfter},
		names.RunWorkflow, &historyv1.RunInput{Definition: &v1.Definition{Name: "wedged", Tasks: map[string]*v1.TaskDefinition{"build": {}, "test": {}}}})
	for _, run := range []string{healthy, id} {
		e := event(0, "build", "failed")
		e.Node = node
		chain := f.describe(t, run).GetWorkflowExecutionInfo().GetExecution().GetRunId()
		f.storeEvents(t, names.Home(run, chain), 0, 0, e)
		signal(t, run, setSignal, &historyv1.StatusResponse{Chain: chain})
		signal(t, run, eventsSignal, &historyv1.EventsResponse{Slices: 1})
	}
	set(t, id, "build", 1, &v1.Task{State: "completed", Type: "shell"})
	child, grandchild := id+"x", id+"y"
	signal(t, id, childSignal, child)
	eventually(t, "the child is open", func() bool {
		return temporalClient.SignalWorkflow(t.Context(), child, "", childSignal, grandchild) == nil
	})
	eventually(t, "the grandchild is open", func() bool { return f.isOpen(t, grandchild) })
	token := startAttempt(t, child, child, "test", 1)
	if err := temporalClient.RecordActivityHeartbeat(t.Context(), token, &historyv1.ExecuteProgress{Spawned: true, Claim: 1}); err != nil {
		t.Fatal(err)
	}

	w := f.watch(t, id)
	w.until(t, "build has completed", func() bool { return w.run.GetTasks()["build"].GetState() == "completed" })
	signal(t, id, panicSignal, "out of order")
	w.until(t, "the watched run has a problem", func() bool { return strings.Contains(w.run.GetProblem(), "out of order") })
	if run := f.get(t, id); !strings.Contains(run.GetProblem(), "out of order") || run.GetState() != "running" || len(run.GetTasks()) != 2 {
		t.Errorf("the run is shown as %v", run)
	}
	eventually(t, "lists show the problem", func() bool {
		items := answer(t, f.client.ListRuns, &v1.ListRunsRequest{Node: node}).GetItems()
		return len(items) == 2 && items[0].GetId() == id && items[0].GetProblem() != ""
	})
	if found, _ := f.pagedEvents(t, &v1.ListRunEventsRequest{Node: node}); len(found) != 2 || found[0].GetRun() != id || found[1].GetRun() != healthy {
		t.Errorf("events %v", found)
	}

	res := do(t, f.client.CancelRun, &v1.CancelRunRequest{Id: id, Reason: "enough", Force: true})
	if res.GetId() != id || res.GetChildren() != 2 || res.GetAttempts() != 1 {
		t.Errorf("it says that it did %v; want 2 children and 1 attempt", res)
	}
	for _, ended := range []string{id, child, grandchild} {
		if f.isOpen(t, ended) {
			t.Errorf("%s is still open", ended)
		}
	}
	if run := f.get(t, id); run.GetState() != "failed" || run.GetReason() != "terminated" || !strings.HasSuffix(run.GetError(), "ended by force: enough") || run.GetProblem() != "" {
		t.Errorf("the run has ended as %v", run)
	}
	refused(t, "force twice", f.client.CancelRun, &v1.CancelRunRequest{Id: id, Force: true}, connect.CodeAborted)
}

// TestProblemOfAPartIsShownOnItsRun covers a part of a large fan-out that no longer answers.
func TestProblemOfAPartIsShownOnItsRun(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "parted")
	part := names.FanOut{Run: id, Chain: "chain", Task: "each", From: childFrom}.ID()
	execute(t, client.StartWorkflowOptions{ID: part, WorkflowTaskTimeout: stuckAfter}, names.FanOutWorkflow, &historyv1.RunInput{Partition: &historyv1.Partition{From: childFrom, To: 7}})
	w := f.watch(t, id)
	signal(t, part, panicSignal, "out of order")
	isShown := func(run *v1.Run) bool {
		return strings.Contains(run.GetProblem(), "instances from each[") && strings.Contains(run.GetProblem(), "out of order")
	}
	w.until(t, "the watched run has the problem of its part", func() bool { return isShown(w.run) })
	if run := f.get(t, id); !isShown(run) || run.GetState() != "running" {
		t.Errorf("the run is shown as %v", run)
	}
	eventually(t, "lists show the problem of the part", func() bool {
		items := answer(t, f.client.ListRuns, &v1.ListRunsRequest{Name: "parted"}).GetItems()
		return len(items) == 1 && strings.HasPrefix(items[0].GetProblem(), "instances from each[")
	})
}

// TestForceKeepsTheProgressOfEachRun forcibly ends two runs that still answer and had the same id one after the other. The progress
// of each stays known although its workflow is no longer queried, and that of the first is not attributed to the second.
func TestForceKeepsTheProgressOfEachRun(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := names.NewRunID("again")
	in := &historyv1.RunInput{Definition: &v1.Definition{Name: "again", Tasks: map[string]*v1.TaskDefinition{"build": {Type: "shell"}, "test": {Type: "shell"}}, Finally: map[string]*v1.TaskDefinition{"tidy": {Type: "shell"}}}}
	for _, state := range []string{"completed", "failed"} {
		run, build := execute(t, client.StartWorkflowOptions{ID: id}, names.RunWorkflow, in), &v1.Task{State: state, Type: "shell"}
		hasBegun := state == "failed"
		if hasBegun {
			build.StartedAt = timestamppb.Now()
		}
		signal(t, id, setSignal, &historyv1.StatusResponse{
			Run: &v1.Run{Tasks: map[string]*v1.Task{"build": build}}, Claims: map[string]int32{"build": 1}, Chain: run.GetRunID(),
		})
		// A forced cancellation does not wait long for an answer, so the gateway must have read the whole run.
		eventually(t, "the gateway has read the whole run", func() bool {
			before := f.describe(t, id)
			f.get(t, id)
			after := f.describe(t, id)
			return after.GetPendingWorkflowTask() == nil && before.GetWorkflowExecutionInfo().GetHistoryLength() == after.GetWorkflowExecutionInfo().GetHistoryLength()
		})
		if res := do(t, f.client.CancelRun, &v1.CancelRunRequest{Id: id, Force: true}); res.GetFinallyLeftOut() != hasBegun {
			t.Errorf("%s: finally, which can run only after a run that has begun, is recommended: %t", state, res.GetFinallyLeftOut())
		}
		kept, err := f.reader.LastStatus(t.Context(), f.describe(t, id))
		if got := kept.GetRun().GetTasks()["build"].GetState(); err != nil || got != state {
			t.Errorf("build is kept as %s, %v; want %s", got, err, state)
		}
		if tasks := f.get(t, id).GetTasks(); tasks["build"].GetState() != state || tasks["test"].GetState() != "cancelled" {
			t.Errorf("the tasks are %v", tasks)
		}
		var stored historyv1.StatusResponse
		if err := f.config.Store.GetMessage(t.Context(), storekey.Status(names.Home(id, run.GetRunID()), 0), &stored); err != nil {
			t.Error(err)
		}
	}
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

// TestListsLeaveOutTheRunThatDoesNotAnswer covers a run whose workflow task has failed a moment ago, so that it does not answer and
// has no known problem yet.
func TestListsLeaveOutTheRunThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	f := start(t)
	known := visibility.Started("mute", v1.TriggerSubmit, time.Now())
	known.DeadLetters, known.Nodes = 1, []string{"mute-node"}
	healthy, id := startedWith(t, known), names.NewRunID("mute")
	execute(t, client.StartWorkflowOptions{ID: id, TypedSearchAttributes: known.Typed(), WorkflowTaskTimeout: time.Minute},
		names.RunWorkflow, &historyv1.RunInput{Definition: &v1.Definition{Name: "mute", Tasks: map[string]*v1.TaskDefinition{"build": {}}}})
	deadLetter(t, healthy, "build", 1, "mute-node")
	e := event(0, "build", "failed")
	e.Node = "mute-node"
	signal(t, healthy, eventsSignal, &historyv1.EventsResponse{Events: []*v1.Event{e}})
	eventually(t, "both runs are listed", func() bool {
		return len(answer(t, f.client.ListRuns, &v1.ListRunsRequest{Name: "mute"}).GetItems()) == 2
	})
	signal(t, id, panicSignal, "out of order")
	eventually(t, "the workflow task has failed", func() bool {
		return f.describe(t, id).GetPendingWorkflowTask().GetAttempt() > 1
	})
	// The lists of the shared cluster warn of the broken runs of other tests, too.
	leavesOut := func(what string, warnings []string, found bool) {
		t.Helper()
		warned := slices.ContainsFunc(warnings, func(w string) bool {
			return strings.Contains(w, id) && strings.Contains(w, "does not answer")
		})
		if !found || !warned {
			t.Errorf("%s: the other run is listed: %v; warnings %q", what, found, warnings)
		}
	}
	// Each call is made once: a list that waits for the run until it has a known problem is a list that fails before.
	events := do(t, f.client.ListRunEvents, &v1.ListRunEventsRequest{Node: "mute-node"})
	leavesOut("events", events.GetWarnings(), len(events.GetItems()) == 1 && events.GetItems()[0].GetRun() == healthy)
	tasks := do(t, dialService(t, f, switchyardv1connect.NewTaskServiceClient, "").ListTasks, &v1.ListTasksRequest{Workflow: "mute"})
	leavesOut("tasks", tasks.GetWarnings(), len(tasks.GetItems()) == 1 && tasks.GetItems()[0].GetRun() == healthy)
	letters := do(t, f.client.ListDeadLetters, &v1.ListDeadLettersRequest{Node: "mute-node"})
	leavesOut("dead letters", letters.GetWarnings(), len(letters.GetItems()) == 1 && letters.GetItems()[0].GetRun() == healthy)
}
