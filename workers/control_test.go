package workers_test

import (
	"strings"
	"testing"
	"time"

	"switchyard/activities/election"
	"switchyard/activities/registry"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/names"
)

// joinFleet starts another control process with its own connection.
func joinFleet(t *testing.T, y *workertest.Cluster, role workers.Role) (*workers.Control, *workers.Connection, error) {
	t.Helper()
	conn, err := workers.Dial(t.Context(), workers.DialOptions{Address: y.Server.Address(), Identity: "other", Logger: y.Logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	cfg := y.Config
	cfg.Client, cfg.Role = conn, role
	c, err := workers.StartControl(t.Context(), cfg)
	if err == nil {
		t.Cleanup(c.Stop)
	}
	return c, conn, err
}

// TestLeadershipIsHandedOver checks that a stopping control process hands the placement queue over at once, and that
// there is never more than one leader, whatever the roles.
func TestLeadershipIsHandedOver(t *testing.T) {
	t.Parallel()
	y := workertest.Own(t, workers.ControlConfig{Role: workers.RoleLeader})
	c := y.Nodes(t, workertest.Script{"a": {{Block: true}}})
	workertest.Eventually(t, "the leader that has started leads", y.Control.IsLeader)
	if _, _, err := joinFleet(t, y, workers.RoleLeader); err == nil || !strings.Contains(err.Error(), "is owned by") || !strings.Contains(err.Error(), "--role auto") {
		t.Errorf("a second leader: %v", err)
	}
	helper, _, err := joinFleet(t, y, workers.RoleWorker)
	if err != nil {
		t.Fatal(err)
	}
	observer, _, err := joinFleet(t, y, workers.RoleObserver)
	if err != nil {
		t.Fatal(err)
	}
	heir, _, err := joinFleet(t, y, workers.RoleAuto)
	if err != nil {
		t.Fatal(err)
	}
	c.Start("n")
	h := c.Submit(c.Input(`{name: handover, tasks: {a: {type: shell, spec: {command: x}}, b: {type: shell, spec: {command: x}, dependsOn: [a]}}}`))
	c.AwaitRunning("a")
	if heir.IsLeader() && y.Control.IsLeader() || helper.IsLeader() || observer.IsLeader() {
		t.Error("there are two leaders")
	}
	began := time.Now()
	y.Control.Stop()
	if y.Control.IsLeader() {
		t.Error("a process that has stopped is the leader")
	}
	workertest.Eventually(t, "the heir leads", heir.IsLeader)
	t.Logf("handed over within %v", time.Since(began))
	c.Fake.Release("a")
	workertest.CheckRun(t, h.Wait(), "completed", nil)
	if helper.IsLeader() || observer.IsLeader() {
		t.Error("a role that never owns does")
	}
	if n := c.Calls(); n["a"] != 1 || n["b"] != 1 {
		t.Errorf("the tasks ran %v times", n)
	}
}

// TestLeaderThatIsCutOffIsReplaced checks that a leader that is cut off from the server stops before another one takes
// over, and that no running or waiting task is lost or run twice.
func TestLeaderThatIsCutOffIsReplaced(t *testing.T) {
	t.Parallel()
	y := workertest.Own(t, workers.ControlConfig{Role: workers.RoleObserver})
	c := y.Nodes(t, workertest.Script{"a": {{Block: true}}})
	leader, conn, err := joinFleet(t, y, workers.RoleLeader)
	if err != nil {
		t.Fatal(err)
	}
	heir, _, err := joinFleet(t, y, workers.RoleAuto)
	if err != nil {
		t.Fatal(err)
	}
	c.Start("n", func(cfg *workers.NodeConfig) { cfg.MaxParallel = 1 })
	h := c.Submit(c.Input(`{name: cut, tasks: {
		a: {type: shell, priority: 9, spec: {command: x}}, w: {type: shell, spec: {command: x}},
		b: {type: shell, spec: {command: x}, dependsOn: [a]}}}`))
	c.AwaitRunning("a")
	h.AwaitTask("w", func(task *v1.Task) bool { return task.GetError() != "" })
	began := time.Now()
	conn.Close()
	workertest.Eventually(t, "one of them leads", func() bool {
		first, second := leader.IsLeader(), heir.IsLeader()
		if first && second && heir.IsLeader() && leader.IsLeader() {
			t.Fatal("there are two leaders")
		}
		return !first && second
	})
	t.Logf("replaced within %v", time.Since(began))
	c.Fake.Release("a")
	workertest.CheckRun(t, h.Wait(), "completed", nil)
	t.Logf("the run went on within %v", time.Since(began))
	if n := c.Calls(); n["a"] != 1 || n["b"] != 1 || n["w"] != 1 {
		t.Errorf("the tasks ran %v times", n)
	}
}

// TestLeaderSetsItsLease checks that the server measures the lease of the process that leads, and keeps it for no other one.
func TestLeaderSetsItsLease(t *testing.T) {
	t.Parallel()
	y := workertest.Own(t, workers.ControlConfig{Leader: election.Timing{Lease: 20 * time.Second, Renewal: 200 * time.Millisecond}})
	lease := func() time.Duration {
		d, err := y.Conn.DescribeWorkflowExecution(t.Context(), names.LeaderWorkflowID, "")
		if err != nil || len(d.GetPendingActivities()) != 1 {
			return 0
		}
		return d.GetPendingActivities()[0].GetActivityOptions().GetHeartbeatTimeout().AsDuration()
	}
	workertest.Eventually(t, "the first leads", y.Control.IsLeader)
	if got := lease(); got != 20*time.Second {
		t.Errorf("the lease of the first is %v", got)
	}
	y.Config.Leader = election.Timing{Lease: 3 * time.Second}
	heir, conn, err := joinFleet(t, y, workers.RoleAuto)
	if err != nil {
		t.Fatal(err)
	}
	y.Control.Stop()
	workertest.Eventually(t, "the heir leads", heir.IsLeader)
	if got := lease(); got != 3*time.Second {
		t.Errorf("the lease of the heir is %v", got)
	}
	y.Config.Leader = election.Timing{}
	last, _, err := joinFleet(t, y, workers.RoleAuto)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	workertest.Eventually(t, "the heir that is cut off stops, and then the last leads", func() bool {
		first, second := heir.IsLeader(), last.IsLeader()
		if first && second && heir.IsLeader() && last.IsLeader() {
			t.Fatal("there are two leaders")
		}
		return !first && second
	})
	if got := lease(); got != election.DefaultLease {
		t.Errorf("the lease of the last is %v", got)
	}
}

// TestElectionIsHeldAgain checks that the election continues after its workflow was ended, that a process relieves a leader
// whose epoch is in the lock file that it has left, and that the lock alone proves nothing: the leader may see another one.
func TestElectionIsHeldAgain(t *testing.T) {
	t.Parallel()
	y := workertest.Own(t, workers.ControlConfig{})
	c := y.Nodes(t, nil)
	workertest.Eventually(t, "somebody leads", y.Control.IsLeader)
	leader := func() *historyv1.LeaderHeartbeat {
		beat, _, err := registry.New(c.Conn).Leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return beat
	}
	first, locks := leader(), t.TempDir()
	y.Config.RelieveDead(t.Context(), locks)
	if now := leader(); now.GetEpoch() != first.GetEpoch() {
		t.Errorf("a live leader is relieved: %v, now %v", first, now)
	}
	leaveLock(t, locks, c.Conn.Fleet+"/leader", "leader", first.GetEpoch())
	y.Config.RelieveDead(t.Context(), locks)
	workertest.Eventually(t, "another epoch", func() bool { now := leader(); return now != nil && now.GetEpoch() != first.GetEpoch() })
	workertest.Eventually(t, "somebody leads again", y.Control.IsLeader)
	before := y.Control.CurrentTerm()
	if err := c.Conn.TerminateWorkflow(t.Context(), names.LeaderWorkflowID, "", "a test"); err != nil {
		t.Fatal(err)
	}
	workertest.Eventually(t, "a new term", func() bool { now := y.Control.CurrentTerm(); return now != nil && now != before })
	c.Start("n")
	workertest.CheckRun(t, c.Do(`{name: again, tasks: {x: {type: shell, spec: {command: x}}}}`), "completed", nil)
}

func TestParseRole(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]workers.Role{"": workers.RoleAuto, "auto": workers.RoleAuto, "observer": workers.RoleObserver} {
		if got, err := workers.ParseRole(text); got != want || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if _, err := workers.ParseRole("boss"); err == nil || !strings.Contains(err.Error(), "leader") {
		t.Errorf("an unknown role: %v", err)
	}
}
