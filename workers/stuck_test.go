package workers

import (
	"log/slog"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"switchyard/workflows/names"
)

// TestStuckRunsAreCounted starts a workflow of the type Run on a queue whose worker panics.
func TestStuckRunsAreCounted(t *testing.T) {
	t.Parallel()
	y := shared(t)
	const queue = "panicking"
	w := worker.New(y.conn.Client, queue, worker.Options{})
	w.RegisterWorkflowWithOptions(func(workflow.Context) error { panic("on purpose") }, workflow.RegisterOptions{Name: names.RunWorkflow})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	run, err := y.conn.ExecuteWorkflow(t.Context(), client.StartWorkflowOptions{ID: "stuck-a2b3c4d5", TaskQueue: queue}, names.RunWorkflow)
	if err != nil {
		t.Fatal(err)
	}
	s := &stuckRuns{client: y.conn, log: slog.New(slog.DiscardHandler)}
	eventually(t, "the run is counted", func() bool { s.look(t.Context()); return s.runs() == 1 })
	if err := y.conn.TerminateWorkflow(t.Context(), run.GetID(), run.GetRunID(), "the test is over"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is not counted any more", func() bool { s.look(t.Context()); return s.runs() == 0 })
}
