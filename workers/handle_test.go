package workers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// handle is a run that a test has started.
type handle struct {
	*workerSet
	id  string
	run client.WorkflowRun
	// chain is the chain of the run's first execution.
	chain string
	// err is how the workflow ended, and records holds the keys of the stored results by task.
	err     error
	records map[string]string
}

// submit starts a run.
func (c *workerSet) submit(in *v1.RunInput) *handle {
	c.t.Helper()
	return c.submitBy(c.conn.Client, in)
}

func (c *workerSet) submitBy(cl client.Client, in *v1.RunInput) *handle {
	c.t.Helper()
	id := names.NewRunID(in.GetDefinition().GetName())
	run, err := cl.ExecuteWorkflow(c.t.Context(), client.StartWorkflowOptions{ID: id, TaskQueue: names.ControlQueue}, names.RunWorkflow, in)
	if err != nil {
		c.t.Fatal(err)
	}
	h := &handle{workerSet: c, id: id, run: run, chain: run.GetRunID()}
	c.t.Cleanup(func() {
		// A run that a failed test leaves open would block its nodes.
		_ = c.conn.TerminateWorkflow(context.Background(), id, "", "the test is over")
	})
	return h
}

// do runs a definition to its end.
func (c *workerSet) do(document string) *v1.Run {
	c.t.Helper()
	return c.submit(c.input(document)).wait()
}

// home returns the prefix under which the run stores its values.
func (h *handle) home() string { return names.Home(h.id, h.chain) }

// child returns the child of the run that carries the instances of a task from the given index on.
func (h *handle) child(generation int32, task string, from int) *handle {
	f := names.FanOut{Run: h.id, Chain: h.chain, Generation: generation, Task: task, From: from}
	return &handle{workerSet: h.workerSet, id: f.ID()}
}

// wait waits for the end of the run and returns its final state.
func (h *handle) wait() *v1.Run {
	h.t.Helper()
	// A blocking Get occasionally misses the end and returns only after 20 s.
	if !h.closed() {
		h.t.Fatalf("run %s is still open\n%s", h.id, h.describe())
	}
	ctx, cancel := context.WithTimeout(h.t.Context(), limit)
	defer cancel()
	var status v1.StatusResponse
	if h.err = h.run.Get(ctx, &status); h.err != nil {
		var read error
		if app, ok := errors.AsType[*temporal.ApplicationError](h.err); ok {
			read = app.Details(&status)
		} else if cancelled, ok := errors.AsType[*temporal.CanceledError](h.err); ok {
			read = cancelled.Details(&status)
		} else {
			h.t.Fatalf("run %s: %v\n%s", h.id, h.err, h.describe())
		}
		if read != nil {
			h.t.Fatalf("run %s has no status: %v (%v)", h.id, h.err, read)
		}
	}
	if len(status.GetRun().GetTasks()) == 0 {
		if err := h.store.GetMessage(ctx, storekey.Status(names.Home(h.id, status.GetChain()), status.GetRun().GetGeneration()), &status); err != nil {
			h.t.Fatal(err)
		}
	}
	h.records = status.GetRecords()
	return status.GetRun()
}

// closed waits until the run has ended. It returns false if the run is still open after limit.
func (h *handle) closed() bool {
	deadline := time.Now().Add(limit)
	for pause := time.Millisecond; h.open(); pause = min(2*pause, 50*time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(pause)
	}
	return true
}

// open reports whether the run is still open.
func (h *handle) open() bool {
	h.t.Helper()
	d := describe(h.t, h.conn, h.id, "")
	return d.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// describe returns what an open run reports, for the message of a failed test.
func (h *handle) describe() string {
	value, err := h.conn.QueryWorkflow(context.Background(), h.id, "", names.StatusQuery, &v1.StatusRequest{})
	if err != nil {
		return err.Error() + h.fault()
	}
	var s v1.StatusResponse
	if err := value.Get(&s); err != nil {
		return err.Error()
	}
	return summary(s.GetRun())
}

// status queries an open run.
func (h *handle) status(req *v1.StatusRequest) *v1.StatusResponse {
	h.t.Helper()
	var res v1.StatusResponse
	h.query(h.id, names.StatusQuery, req, &res)
	return &res
}

// isLate reports whether a call failed because the machine is too busy to answer in time.
func isLate(err error) bool {
	_, late := errors.AsType[*serviceerror.DeadlineExceeded](err)
	return late || errors.Is(err, context.DeadlineExceeded)
}

// describe returns Temporal's description of a workflow. It retries on a slow machine.
func describe(t *testing.T, conn client.Client, id, execution string) (d *workflowservice.DescribeWorkflowExecutionResponse) {
	t.Helper()
	eventually(t, "Temporal describes "+id, func() bool {
		var err error
		d, err = conn.DescribeWorkflowExecution(t.Context(), id, execution)
		if err != nil && !isLate(err) {
			t.Fatal(err)
		}
		return err == nil
	})
	return d
}

// query queries an open workflow. It retries on a slow machine.
func (h *handle) query(id, name string, req, res any) {
	h.t.Helper()
	var value converter.EncodedValue
	eventually(h.t, "workflow "+id+" answers "+name, func() bool {
		var err error
		value, err = h.conn.QueryWorkflow(h.t.Context(), id, "", name, req)
		if err != nil && !isLate(err) && !overtaken(err) {
			h.t.Fatal(err)
		}
		return err == nil
	})
	if err := value.Get(res); err != nil {
		h.t.Fatal(err)
	}
}

// overtaken reports whether a query failed because the cached run was evicted while its history grew: the SDK reports
// that as an illegal state (temporalio/sdk-go issue 755). A run that truly does not replay is found when the cluster
// stops.
func overtaken(err error) bool {
	_, failed := errors.AsType[*serviceerror.QueryFailed](err)
	return failed && strings.Contains(err.Error(), "invalid state transition")
}

// until waits until a task of the open run satisfies a condition.
func (h *handle) until(task string, holds func(*v1.Task) bool) *v1.Task {
	h.t.Helper()
	var seen *v1.Task
	eventually(h.t, fmt.Sprintf("task %s of %s", task, h.id), func() bool {
		seen = h.status(&v1.StatusRequest{}).GetRun().GetTasks()[task]
		return holds(seen)
	})
	return seen
}

func (h *handle) signal(arg any) {
	h.t.Helper()
	if err := h.conn.SignalWorkflow(h.t.Context(), h.id, "", names.CancelSignal, arg); err != nil {
		h.t.Fatal(err)
	}
}

// history returns the history of an execution of the run. "" means the newest.
func (h *handle) history(execution string) []*historypb.HistoryEvent {
	h.t.Helper()
	var events []*historypb.HistoryEvent
	it := h.conn.GetWorkflowHistory(context.Background(), h.id, execution, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for it.HasNext() {
		e, err := it.Next()
		if err != nil {
			h.t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// fault returns why the newest failed workflow task failed.
func (h *handle) fault() string {
	text := ""
	for _, e := range h.history("") {
		if a := e.GetWorkflowTaskFailedEventAttributes(); a != nil {
			text = fmt.Sprintf("\nworkflow task: %v %s", a.GetCause(), a.GetFailure().GetMessage())
		}
	}
	return text
}

// summary formats a run with one line per task.
func summary(run *v1.Run) string {
	var b strings.Builder
	fmt.Fprintf(&b, "run %s: %s %s %s\n", run.GetId(), run.GetState(), run.GetReason(), run.GetError())
	for _, name := range slices.Sorted(maps.Keys(run.GetTasks())) {
		t := run.GetTasks()[name]
		fmt.Fprintf(&b, "  %s: %s %q %q on %q, attempt %d, exit code %d\n", name, t.GetState(), t.GetReason(), t.GetError(),
			t.GetNode(), t.GetAttempt(), t.GetResult().GetExitCode())
	}
	return b.String()
}

// want checks the final state of a run and of its tasks: "state" or "state reason".
func want(t *testing.T, run *v1.Run, state string, tasks map[string]string) {
	t.Helper()
	if run.GetState() != state || len(run.GetTasks()) < len(tasks) {
		t.Fatalf("want the run %s with tasks %v, got\n%s", state, tasks, summary(run))
	}
	for name, want := range tasks {
		task := run.GetTasks()[name]
		state, reason, hasReason := strings.Cut(want, " ")
		if task.GetState() != state || hasReason && task.GetReason() != reason {
			t.Errorf("task %s: want %s, got\n%s", name, want, summary(run))
		}
	}
}

// delete removes a run with its history from the server.
func (h *handle) delete() {
	h.t.Helper()
	_, err := h.conn.WorkflowService().DeleteWorkflowExecution(h.t.Context(), &workflowservice.DeleteWorkflowExecutionRequest{
		Namespace: client.DefaultNamespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: h.id},
	})
	if err != nil {
		h.t.Error(err)
	}
}
