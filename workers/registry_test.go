package workers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/executor/fake"
	"switchyard/activities/registry"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/node"
)

// state waits until the registry has a node in a state, and returns it.
func (c *workerSet) state(node, state string) *v1.Node {
	c.t.Helper()
	var seen *v1.Node
	eventually(c.t, node+" is "+state, func() bool {
		n, err := registry.New(c.conn).Get(c.t.Context(), node)
		if err != nil && !errors.Is(err, registry.ErrUnknown) && !isLate(err) {
			c.t.Fatal(err)
		}
		seen = n
		return n.GetState() == state
	})
	return seen
}

func TestRegistryKeepsANode(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	reg := registry.New(c.conn)
	name := c.name("a")
	if _, err := reg.Get(t.Context(), name); !errors.Is(err, registry.ErrUnknown) || !strings.Contains(err.Error(), name) {
		t.Errorf("a node that never was: %v", err)
	}
	n := c.start("a", func(cfg *NodeConfig) { cfg.Capabilities = map[string]string{"gpu": "none"} })
	first := c.state(name, "active")
	if first.GetMaxParallel() != 50 || first.GetCapabilities()["gpu"] != "none" || first.GetExecutors()[0] != "shell" ||
		first.GetCores().GetTotal() <= 0 || first.GetMemoryMb().GetFree() <= 0 || first.GetRegisteredAt() == nil || first.GetReason() != "" {
		t.Errorf("registered as %v", first)
	}
	eventually(t, "a heartbeat", func() bool {
		got, err := reg.Get(t.Context(), name)
		return err == nil && got.GetLastBeatAt() != nil && got.GetSnapshot().GetSequence() > 0
	})
	if err := reg.Remove(t.Context(), name); !errors.Is(err, registry.ErrState) || !strings.Contains(err.Error(), "stop its worker") {
		t.Errorf("removing a live node: %v", err)
	}
	n.Stop()
	gone := c.state(name, "offline")
	if gone.GetReason() != "left" || gone.GetLabels()[0] != c.label || gone.GetCores().GetFree() != 0 {
		t.Errorf("after it left: %v", gone)
	}
	var listed bool
	eventually(t, "the list names it", func() bool {
		nodes, err := reg.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes {
			listed = listed || n.GetName() == name && n.GetState() == "offline" && n.GetSnapshot() == nil
		}
		return listed
	})
	n = c.start("a")
	if again := c.state(name, "active"); again.GetIncarnation() == first.GetIncarnation() {
		t.Error("another start has the same incarnation")
	}
	n.Stop()
	c.state(name, "offline")
	if err := reg.Remove(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is forgotten", func() bool {
		_, err := reg.Get(t.Context(), name)
		return errors.Is(err, registry.ErrUnknown)
	})
	for what, err := range map[string]error{
		"remove": reg.Remove(t.Context(), name),
		"drain":  func() error { _, err := reg.Drain(t.Context(), name, &v1.NodeDrain{}); return err }(),
	} {
		if !errors.Is(err, registry.ErrUnknown) {
			t.Errorf("%s of a node that is forgotten: %v", what, err)
		}
	}
}

// TestNodeThatStopsAtOnceHasLeft checks that a node that stops while it starts goes offline at once.
func TestNodeThatStopsAtOnceHasLeft(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	entry := &handle{workerSet: c, id: names.NodeWorkflowID(c.name("a"))}
	for range 5 {
		c.start("a").Stop()
		if n := c.state(c.name("a"), "offline"); n.GetReason() != "left" {
			t.Errorf("after it left: %v", n)
		}
	}
	for _, e := range entry.history("") {
		if e.GetActivityTaskTimedOutEventAttributes() != nil {
			t.Error("the fleet found out by the silence of the node")
		}
	}
}

// TestSecondWorkerOfANameIsRefused checks that a second live worker of a name does not start, and that the first one
// continues.
func TestSecondWorkerOfANameIsRefused(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	c.start("a")
	name := c.name("a")
	eventually(t, "a heartbeat", func() bool { return c.state(name, "active").GetLastBeatAt() != nil })
	here, elsewhere := c.config("a"), c.config("a")
	elsewhere.lockDir, elsewhere.machineID = t.TempDir(), "elsewhere"
	for second, want := range map[*NodeConfig]string{&here: "on this machine already", &elsewhere: "already up on machine"} {
		if _, err := StartNode(t.Context(), *second); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the second worker: %v, want it refused because it is %s", err, want)
		}
	}
	want(t, c.do(`{name: on, tasks: {x: {type: shell, spec: {command: x}}}}`), "completed", nil)
}

// TestDeadWorkerMakesRoom checks that a new worker can replace one that died without leaving, once that counts as lost.
func TestDeadWorkerMakesRoom(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	name := c.name("a")
	if _, err := registry.New(c.conn).Register(t.Context(), &v1.NodeRegistration{
		Name: name, Incarnation: "dead", Machine: "elsewhere", OfflineAfter: durationpb.New(2 * time.Second),
	}); err != nil {
		t.Fatal(err)
	}
	c.start("a")
	if n := c.state(name, "active"); n.GetIncarnation() == "dead" {
		t.Error("the dead one is still there")
	}
}

// TestExclusiveWorkerReplacesAtOnce checks that on the same machine the name's lock proves that the old worker is dead.
func TestExclusiveWorkerReplacesAtOnce(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	reg := registry.New(c.conn)
	one := &v1.NodeRegistration{Name: c.name("a"), Incarnation: "1", Machine: "m"}
	two := &v1.NodeRegistration{Name: c.name("a"), Incarnation: "2", Machine: "m"}
	elsewhere := &v1.NodeRegistration{Name: c.name("a"), Incarnation: "3", Machine: "other", Exclusive: true}
	if _, err := reg.Register(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	for _, refused := range []*v1.NodeRegistration{two, elsewhere} {
		if _, err := reg.Register(t.Context(), refused); !errors.Is(err, registry.ErrTaken) || !strings.Contains(err.Error(), "machine m") {
			t.Errorf("%v: %v", refused, err)
		}
	}
	two.Exclusive = true
	if _, err := reg.Register(t.Context(), two); err != nil {
		t.Error(err)
	}
	if n := c.state(c.name("a"), "active"); n.GetIncarnation() != "2" {
		t.Errorf("registered: %v", n)
	}
}

// TestNodeRegistersAgain checks that a node whose entry the server lost registers again while its tasks continue.
func TestNodeRegistersAgain(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"x": {{Block: true}}})
	n := c.start("a", func(cfg *NodeConfig) { cfg.OfflineAfter = 2 * time.Second })
	name := c.name("a")
	h := c.submit(c.input(`{name: again, tasks: {x: {type: shell, spec: {command: x}}}}`))
	c.running("x")
	before := c.state(name, "active")
	if err := c.conn.TerminateWorkflow(t.Context(), names.NodeWorkflowID(name), "", "a test"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it registers again", func() bool {
		again, err := registry.New(c.conn).Get(t.Context(), name)
		return err == nil && again.GetIncarnation() == before.GetIncarnation() && again.GetLastBeatAt() != nil
	})
	c.fake.Release("x")
	want(t, h.wait(), "completed", nil)
	if n.Err() != nil || c.calls()["x"] != 1 {
		t.Errorf("x ran %d times; node: %v", c.calls()["x"], n.Err())
	}
}

// TestNodeLosesItsName checks that a node whose name another worker has taken fails with that reason and does not take
// the name back.
func TestNodeLosesItsName(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	// The node notices the loss only a fifth of this time after its last heartbeat, so the other worker is faster.
	first := c.start("a", func(cfg *NodeConfig) { cfg.OfflineAfter = 40 * time.Second })
	eventually(t, "a heartbeat", func() bool { return c.state(c.name("a"), "active").GetLastBeatAt() != nil })
	if err := c.conn.TerminateWorkflow(t.Context(), names.NodeWorkflowID(c.name("a")), "", "a test"); err != nil {
		t.Fatal(err)
	}
	second := c.start("a", func(cfg *NodeConfig) {
		cfg.OfflineAfter, cfg.lockDir, cfg.machineID = 2*time.Second, t.TempDir(), "elsewhere"
	})
	select {
	case <-first.Failed():
	case <-time.After(limit):
		t.Fatal("the first worker continues")
	}
	if !errors.Is(first.Err(), registry.ErrTaken) || second.Err() != nil {
		t.Errorf("first: %v, second: %v", first.Err(), second.Err())
	}
	first.Stop()
	want(t, c.do(`{name: on, tasks: {x: {type: shell, spec: {command: x}}}}`), "completed", nil)
}

// TestEntryIsForgottenAndContinued checks that a node that is offline for long enough is forgotten, and that an entry
// with a long history continues as new.
func TestEntryIsForgottenAndContinued(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{registrar: node.Registrar{ForgetAfter: 2 * time.Second, HistoryEvents: 30}})
	c := y.workers(t, script{"x": {fake.Exit(0)}})
	name := c.name("a")
	execution := func() string {
		d := describe(c.t, c.conn, names.NodeWorkflowID(name), "")
		return d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	}
	c.start("a").Stop()
	first := execution()
	eventually(t, "a fresh history", func() bool {
		c.start("a").Stop()
		return execution() != first
	})
	n := c.start("a")
	if seen := c.state(name, "active"); seen.GetRegisteredAt() == nil || len(seen.GetLabels()) == 0 {
		t.Errorf("after the fresh start: %v", seen)
	}
	want(t, c.do(`{name: on, tasks: {x: {type: shell, spec: {command: x}}}}`), "completed", nil)
	n.Stop()
	eventually(t, "it is forgotten", func() bool {
		_, err := registry.New(c.conn).Get(context.WithoutCancel(t.Context()), name)
		return errors.Is(err, registry.ErrUnknown)
	})
}
