package workertest

import (
	"context"
	"errors"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workflows/names"
)

// Handle is a run that a test has started, or another workflow whose ID the test knows.
type Handle struct {
	*Nodes
	ID string
	// Workflow is the workflow that Submit or Rerun has started, or nil.
	Workflow client.WorkflowRun
	// Chain is the chain of the run's first execution.
	Chain string
	// Records holds the keys of the stored results by task. Wait sets it.
	Records map[string]string
}

// Submit starts a run with a new ID. The run is terminated with the test if it is still open.
func (c *Nodes) Submit(in *historyv1.RunInput) *Handle {
	c.T.Helper()
	return c.SubmitBy(c.Conn.Client, in)
}

// SubmitBy starts a run, as Submit does, through another client.
func (c *Nodes) SubmitBy(cl client.Client, in *historyv1.RunInput) *Handle {
	c.T.Helper()
	id := names.NewRunID(in.GetDefinition().GetName())
	var run client.WorkflowRun
	err := inTime(func() (err error) {
		run, err = cl.ExecuteWorkflow(c.T.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: names.ControlQueue}, names.RunWorkflow, in)
		return err
	})
	if err != nil {
		c.T.Fatal(err)
	}
	h := &Handle{Nodes: c, ID: id, Workflow: run, Chain: run.GetRunID()}
	c.T.Cleanup(func() {
		// A run that a failed test leaves open would block its nodes.
		_ = c.Conn.TerminateWorkflow(context.Background(), id, "", "the test is over")
	})
	return h
}

// Do runs a definition, written as YAML, to its end and returns the final state.
func (c *Nodes) Do(document string) *v1.Run {
	c.T.Helper()
	return c.Submit(c.Input(document)).Wait()
}

// Home returns the prefix under which the run stores its values.
func (h *Handle) Home() string { return names.Home(h.ID, h.Chain) }

// Partition returns the partition of the run that carries the instances of a task from the given index on.
func (h *Handle) Partition(generation int32, task string, from int) *Handle {
	f := names.FanOut{Run: h.ID, Chain: h.Chain, Generation: generation, Task: task, From: from}
	return &Handle{Nodes: h.Nodes, ID: f.ID()}
}

// Wait waits for the end of the run and returns its final state. It fails the test if the run does not end within [Limit].
func (h *Handle) Wait() *v1.Run {
	h.T.Helper()
	// A blocking Get occasionally misses the end and returns only after 20 s.
	if !h.AwaitEnd() {
		h.T.Fatalf("run %s is still open\n%s", h.ID, h.describe())
	}
	ctx, cancel := context.WithTimeout(h.T.Context(), Limit)
	defer cancel()
	var status historyv1.StatusResponse
	if err := h.Workflow.Get(ctx, &status); err != nil {
		var read error
		if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
			read = app.Details(&status)
		} else if cancelled, ok := errors.AsType[*temporal.CanceledError](err); ok {
			read = cancelled.Details(&status)
		} else {
			h.T.Fatalf("run %s: %v\n%s", h.ID, err, h.describe())
		}
		if read != nil {
			h.T.Fatalf("run %s has no status: %v (%v)", h.ID, err, read)
		}
	}
	if len(status.GetRun().GetTasks()) == 0 {
		if err := h.Store.GetMessage(ctx, storekey.Status(names.Home(h.ID, status.GetChain()), status.GetRun().GetGeneration()), &status); err != nil {
			h.T.Fatal(err)
		}
	}
	h.Records = status.GetRecords()
	return status.GetRun()
}

// AwaitEnd waits until the run has ended. It returns false if the run is still open after [Limit].
func (h *Handle) AwaitEnd() bool {
	deadline := time.Now().Add(Limit)
	for pause := time.Millisecond; h.IsOpen(); pause = nextPause(pause) {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pause)
	}
	return true
}

// IsOpen reports whether the run is still open.
func (h *Handle) IsOpen() bool {
	h.T.Helper()
	d := Describe(h.T, h.Conn, h.ID, "")
	return d.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// HasSpawned reports whether the server knows that the process of an attempt runs.
func (h *Handle) HasSpawned() bool {
	h.T.Helper()
	return h.CountSpawned() > 0
}

// CountSpawned returns of how many attempts the server knows that their process runs.
func (h *Handle) CountSpawned() (n int) {
	h.T.Helper()
	d := Describe(h.T, h.Conn, h.ID, "")
	for _, a := range d.GetPendingActivities() {
		var p historyv1.ExecuteProgress
		if a.GetHeartbeatDetails() != nil && workers.NewDataConverter().FromPayloads(a.GetHeartbeatDetails(), &p) == nil && p.GetSpawned() {
			n++
		}
	}
	return n
}

// Status queries an open run for its status.
func (h *Handle) Status(req *historyv1.StatusRequest) *historyv1.StatusResponse {
	h.T.Helper()
	var res historyv1.StatusResponse
	h.Query(h.ID, names.StatusQuery, req, &res)
	return &res
}

// Query queries an open workflow. It retries on a slow machine.
func (h *Handle) Query(id, name string, req, res any) {
	h.T.Helper()
	var value converter.EncodedValue
	Eventually(h.T, "workflow "+id+" answers "+name, func() bool {
		var err error
		value, err = h.Conn.QueryWorkflow(h.T.Context(), id, "", name, req)
		if err != nil && !IsLate(err) && !overtaken(err) {
			h.T.Fatal(err)
		}
		return err == nil
	})
	if err := value.Get(res); err != nil {
		h.T.Fatal(err)
	}
}

// AwaitTask waits until a task of the open run satisfies a condition, and returns it.
func (h *Handle) AwaitTask(task string, holds func(*v1.Task) bool) *v1.Task {
	h.T.Helper()
	var seen *v1.Task
	Eventually(h.T, fmt.Sprintf("task %s of %s", task, h.ID), func() bool {
		seen = h.Status(&historyv1.StatusRequest{}).GetRun().GetTasks()[task]
		return holds(seen)
	})
	return seen
}

// Cancel sends the run the signal that cancels it, with an argument, which may be nil.
func (h *Handle) Cancel(arg any) {
	h.T.Helper()
	if err := inTime(func() error { return h.Conn.SignalWorkflow(h.T.Context(), h.ID, "", names.CancelSignal, arg) }); err != nil {
		h.T.Fatal(err)
	}
}

// History returns the history of an execution of the run. "" means the newest. It retries on a slow machine.
func (h *Handle) History(execution string) (events []*historypb.HistoryEvent) {
	h.T.Helper()
	Eventually(h.T, "the history of "+h.ID, func() bool {
		events = nil
		it := h.Conn.GetWorkflowHistory(context.Background(), h.ID, execution, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
		for it.HasNext() {
			e, err := it.Next()
			if IsLate(err) {
				return false
			}
			if err != nil {
				h.T.Fatal(err)
			}
			events = append(events, e)
		}
		return true
	})
	return events
}

// Delete removes a run with its history from the server.
func (h *Handle) Delete() {
	h.T.Helper()
	_, err := h.Conn.WorkflowService().DeleteWorkflowExecution(h.T.Context(), &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: client.DefaultNamespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: h.ID},
	})
	if err != nil {
		h.T.Error(err)
	}
}

// Rerun continues the ended run as its next generation.
func (h *Handle) Rerun(in *historyv1.RunInput, generation int32, rerun *historyv1.Rerun) *Handle {
	h.T.Helper()
	in = proto.CloneOf(in)
	in.Generation, in.Rerun, in.Chain = generation, rerun, h.Chain
	run, err := h.Conn.ExecuteWorkflow(h.T.Context(), client.StartWorkflowOptions{
		ID: h.ID, TaskQueue: names.ControlQueue, WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
	}, names.RunWorkflow, in)
	if err != nil {
		h.T.Fatal(err)
	}
	return &Handle{Nodes: h.Nodes, ID: h.ID, Workflow: run, Chain: h.Chain}
}
