package workers_test

import (
	"errors"
	"testing"
	"time"

	"go.temporal.io/sdk/client"

	"switchyard/activities/heartbeat"
	"switchyard/activities/registry"
	"switchyard/workers/workertest"
	"switchyard/workflows/names"
)

// TestAttemptOnADeadNodeMoves checks that the old attempt of a silent node waits for the node, and moves when a person says that the
// node is dead, also if the node has been removed before. A node that sends heartbeats is not dead.
func TestAttemptOnADeadNodeMoves(t *testing.T) {
	t.Parallel()
	for name, isRemoved := range map[string]bool{"silent": false, "removed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := workertest.Shared(t).Nodes(t, workertest.Script{"old": {{Block: true}, {}}})
			l := c.StartBehindLink("n")
			h := c.Submit(c.Input(`{name: old, tasks: {old: {type: shell, spec: {command: x}, retry: {backoffMs: 1}}}}`))
			c.AwaitRunning("old")
			of := heartbeat.Activity{Namespace: client.DefaultNamespace, WorkflowID: h.ID, RunID: h.Chain, ID: names.AttemptID("old", 1)}
			if _, err := heartbeat.SetTimeout(t.Context(), c.Conn, of, time.Hour); err != nil {
				t.Fatal(err)
			}
			nodes := registry.New(c.Conn)
			if _, err := nodes.RemoveDead(t.Context(), c.Name("n")); !errors.Is(err, registry.ErrState) {
				t.Errorf("a node that sends heartbeats is removed: %v", err)
			}
			c.Start("m")
			l.Cut()
			if isRemoved {
				workertest.Eventually(t, "the node is offline", func() bool { return nodes.Remove(t.Context(), c.Name("n")) == nil })
			}
			var lost int
			workertest.Eventually(t, "the node is silent", func() bool {
				var err error
				lost, err = nodes.RemoveDead(t.Context(), c.Name("n"))
				return err == nil
			})
			if lost != 1 {
				t.Errorf("%d attempts are lost", lost)
			}
			workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"old": "completed"})
			if _, err := nodes.RemoveDead(t.Context(), c.Name("n")); !errors.Is(err, registry.ErrUnknown) {
				t.Errorf("the node is still registered: %v", err)
			}
		})
	}
}

// TestHeartbeatTimeoutIsRaised raises the heartbeat time-out of a running attempt, which Temporal still knows when the run has been
// closed from outside. Another execution, or another activity, does not change it.
func TestHeartbeatTimeoutIsRaised(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"old": {{Block: true}}})
	c.Start("n")
	h := c.Submit(c.Input(`{name: old, tasks: {old: {type: shell, spec: {command: x}, retry: {maxRetries: 0}}}}`))
	c.AwaitRunning("old")
	conn := c.Conn
	desc, err := conn.DescribeWorkflowExecution(t.Context(), h.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	of := heartbeat.Activity{
		Namespace: client.DefaultNamespace, WorkflowID: h.ID, RunID: desc.GetWorkflowExecutionInfo().GetExecution().GetRunId(), ID: names.AttemptID("old", 1),
	}
	if got, err := heartbeat.SetTimeout(t.Context(), conn, of, 5*time.Minute); err != nil || got != 5*time.Minute {
		t.Fatalf("raised to %v, %v", got, err)
	}
	if got, err := heartbeat.TimeoutOf(t.Context(), conn, of); err != nil || got != 5*time.Minute {
		t.Errorf("the server says %v, %v", got, err)
	}
	other := of
	other.ID = names.AttemptID("old", 2)
	if _, err := heartbeat.SetTimeout(t.Context(), conn, other, time.Hour); err != heartbeat.ErrGone {
		t.Errorf("of an unknown activity: %v", err)
	}
	if err := conn.TerminateWorkflow(t.Context(), h.ID, "", "test"); err != nil {
		t.Fatal(err)
	}
	if desc, err = conn.DescribeWorkflowExecution(t.Context(), h.ID, of.RunID); err != nil {
		t.Fatal(err)
	}
	pending := desc.GetPendingActivities()
	if len(pending) != 1 || pending[0].GetActivityOptions().GetHeartbeatTimeout().AsDuration() != 5*time.Minute {
		t.Errorf("of the closed run the server knows %v", pending)
	}
	if _, err := heartbeat.SetTimeout(t.Context(), conn, of, time.Hour); err != heartbeat.ErrGone {
		t.Errorf("of a closed run: %v", err)
	}
}
