package workers_test

import (
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/names"
)

// TestStuckRunsAreCounted starts a workflow of the type Run on a queue whose worker panics.
func TestStuckRunsAreCounted(t *testing.T) {
	t.Parallel()
	y := workertest.Shared(t)
	const queue = "panicking"
	w := worker.New(y.Conn.Client, queue, worker.Options{})
	w.RegisterWorkflowWithOptions(func(workflow.Context) error { panic("on purpose") }, workflow.RegisterOptions{Name: names.RunWorkflow})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	run, err := y.Conn.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{
		ID: "stuck-a2b3c4d5", TaskQueue: queue, WorkflowTaskTimeout: time.Second,
	}, names.RunWorkflow)
	if err != nil {
		t.Fatal(err)
	}
	workertest.Eventually(t, "the run is counted", func() bool { return workers.CountStuckRuns(t.Context(), y.Conn) == 1 })
	if err := y.Conn.TerminateWorkflow(t.Context(), run.GetID(), run.GetRunID(), "the test is over"); err != nil {
		t.Fatal(err)
	}
	workertest.Eventually(t, "it is not counted any more", func() bool { return workers.CountStuckRuns(t.Context(), y.Conn) == 0 })
}
