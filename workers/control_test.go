package workers

import (
	"strings"
	"testing"
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// join starts another control process with its own connection.
func (y *cluster) join(t *testing.T, role Role) (*Control, *Connection, error) {
	t.Helper()
	conn, err := Dial(t.Context(), DialOptions{Address: y.server.Address(), Identity: "other", Logger: y.logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	cfg := y.config
	cfg.Client, cfg.Role = conn, role
	c, err := StartControl(t.Context(), cfg)
	if err == nil {
		t.Cleanup(c.Stop)
	}
	return c, conn, err
}

// TestLeadershipIsHandedOver checks that a stopping control process hands the placement queue over at once, and that
// there is never more than one leader, whatever the roles.
func TestLeadershipIsHandedOver(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{Role: RoleLeader})
	c := y.workers(t, script{"a": {{Block: true}}})
	if !y.control.IsLeader() {
		t.Fatal("a leader has started that does not own the placement queue")
	}
	if _, _, err := y.join(t, RoleLeader); err == nil || !strings.Contains(err.Error(), "is owned by") || !strings.Contains(err.Error(), "--role auto") {
		t.Errorf("a second leader: %v", err)
	}
	helper, _, err := y.join(t, RoleWorker)
	if err != nil {
		t.Fatal(err)
	}
	observer, _, err := y.join(t, RoleObserver)
	if err != nil {
		t.Fatal(err)
	}
	heir, _, err := y.join(t, RoleAuto)
	if err != nil {
		t.Fatal(err)
	}
	c.start("n")
	h := c.submit(c.input(`{name: handover, tasks: {a: {type: shell, spec: {command: x}}, b: {type: shell, spec: {command: x}, dependsOn: [a]}}}`))
	c.running("a")
	if heir.IsLeader() && y.control.IsLeader() || helper.IsLeader() || observer.IsLeader() {
		t.Error("there are two leaders")
	}
	began := time.Now()
	y.control.Stop()
	if y.control.IsLeader() {
		t.Error("a process that has stopped is the leader")
	}
	eventually(t, "the heir leads", heir.IsLeader)
	t.Logf("handed over within %v", time.Since(began))
	c.fake.Release("a")
	want(t, h.wait(), "completed", nil)
	if helper.IsLeader() || observer.IsLeader() {
		t.Error("a role that never owns does")
	}
	if n := c.calls(); n["a"] != 1 || n["b"] != 1 {
		t.Errorf("the tasks ran %v times", n)
	}
}

// TestLeaderThatIsCutOffIsReplaced checks that a leader that is cut off from the server stops before another one takes
// over, and that no running or waiting task is lost or run twice.
func TestLeaderThatIsCutOffIsReplaced(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{Role: RoleObserver})
	c := y.workers(t, script{"a": {{Block: true}}})
	leader, conn, err := y.join(t, RoleLeader)
	if err != nil {
		t.Fatal(err)
	}
	heir, _, err := y.join(t, RoleAuto)
	if err != nil {
		t.Fatal(err)
	}
	c.start("n", func(cfg *NodeConfig) { cfg.MaxParallel = 1 })
	h := c.submit(c.input(`{name: cut, tasks: {
		a: {type: shell, priority: 9, spec: {command: x}}, w: {type: shell, spec: {command: x}},
		b: {type: shell, spec: {command: x}, dependsOn: [a]}}}`))
	c.running("a")
	h.until("w", func(task *v1.Task) bool { return task.GetError() != "" })
	began := time.Now()
	conn.Close()
	eventually(t, "one of them leads", func() bool {
		first, second := leader.IsLeader(), heir.IsLeader()
		if first && second && heir.IsLeader() && leader.IsLeader() {
			t.Fatal("there are two leaders")
		}
		return !first && second
	})
	t.Logf("replaced within %v", time.Since(began))
	c.fake.Release("a")
	want(t, h.wait(), "completed", nil)
	t.Logf("the run went on within %v", time.Since(began))
	if n := c.calls(); n["a"] != 1 || n["b"] != 1 || n["w"] != 1 {
		t.Errorf("the tasks ran %v times", n)
	}
}

// TestElectionIsHeldAgain checks that the election continues after its workflow was ended.
func TestElectionIsHeldAgain(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{})
	c := y.workers(t, nil)
	eventually(t, "somebody leads", y.control.IsLeader)
	before := y.control.current()
	if err := c.conn.TerminateWorkflow(t.Context(), names.LeaderWorkflowID, "", "a test"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a new term", func() bool { now := y.control.current(); return now != nil && now != before })
	c.start("n")
	want(t, c.do(`{name: again, tasks: {x: {type: shell, spec: {command: x}}}}`), "completed", nil)
}

func TestParseRole(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]Role{"": RoleAuto, "auto": RoleAuto, "observer": RoleObserver} {
		if got, err := ParseRole(text); got != want || err != nil {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	if _, err := ParseRole("boss"); err == nil || !strings.Contains(err.Error(), "leader") {
		t.Errorf("an unknown role: %v", err)
	}
}
