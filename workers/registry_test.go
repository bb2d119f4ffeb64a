package workers_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/activities/registry"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/node"
	"switchyard/workers/workertest"
	"switchyard/workflows/names"
	nodeworkflow "switchyard/workflows/node"
)

func TestRegistryKeepsANode(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	reg := registry.New(c.Conn)
	name := c.Name("a")
	if _, err := reg.Get(t.Context(), name); !errors.Is(err, registry.ErrUnknown) || !strings.Contains(err.Error(), name) {
		t.Errorf("a node that never was: %v", err)
	}
	n := c.Start("a", func(cfg *workers.NodeConfig) {
		cfg.Capabilities, cfg.SharedDir = map[string]string{"gpu": "none"}, "/shared"
	})
	first := c.AwaitState(name, "active")
	if first.GetMaxParallel() != 50 || first.GetCapabilities()["gpu"] != "none" || first.GetCapabilities()["shared-dir"] != "true" || first.GetExecutors()[0] != "shell" ||
		first.GetCores().GetTotal() <= 0 || first.GetMemoryMb().GetFree() <= 0 || first.GetRegisteredAt() == nil || first.GetReason() != "" {
		t.Errorf("registered as %v", first)
	}
	workertest.Eventually(t, "a heartbeat", func() bool {
		got, err := reg.Get(t.Context(), name)
		return err == nil && got.GetLastBeatAt() != nil && got.GetSnapshot().GetSequence() > 0
	})
	if err := reg.Remove(t.Context(), name); !errors.Is(err, registry.ErrState) || !strings.Contains(err.Error(), "stop its worker") {
		t.Errorf("removing a live node: %v", err)
	}
	n.Stop()
	gone := c.AwaitState(name, "offline")
	if gone.GetReason() != "left" || gone.GetLabels()[0] != c.Label || gone.GetCores().GetFree() != 0 {
		t.Errorf("after it left: %v", gone)
	}
	var listed bool
	workertest.Eventually(t, "the list names it", func() bool {
		nodes, err := reg.List(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range nodes {
			listed = listed || n.GetName() == name && n.GetState() == "offline" && n.GetSnapshot() == nil
		}
		return listed
	})
	n = c.Start("a")
	if again := c.AwaitState(name, "active"); again.GetIncarnation() == first.GetIncarnation() {
		t.Error("another start has the same incarnation")
	}
	n.Stop()
	c.AwaitState(name, "offline")
	if err := reg.Remove(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	workertest.Eventually(t, "it is forgotten", func() bool {
		_, err := reg.Get(t.Context(), name)
		return errors.Is(err, registry.ErrUnknown)
	})
	for what, err := range map[string]error{
		"remove": reg.Remove(t.Context(), name),
		"drain":  func() error { _, err := reg.Drain(t.Context(), name, &historyv1.NodeDrain{}); return err }(),
	} {
		if !errors.Is(err, registry.ErrUnknown) {
			t.Errorf("%s of a node that is forgotten: %v", what, err)
		}
	}
}

// TestNodeThatStopsAtOnceHasLeft checks that a node that stops while it starts goes offline at once.
func TestNodeThatStopsAtOnceHasLeft(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	entry := &workertest.Handle{Nodes: c, ID: names.NodeWorkflowID(c.Name("a"))}
	for range 5 {
		c.Start("a").Stop()
		if n := c.AwaitState(c.Name("a"), "offline"); n.GetReason() != "left" {
			t.Errorf("after it left: %v", n)
		}
	}
	for _, e := range entry.History("") {
		if e.GetActivityTaskTimedOutEventAttributes() != nil {
			t.Error("the fleet found out by the silence of the node")
		}
	}
}

// TestSecondWorkerOfANameIsRefused checks that a second live worker of a name does not start, whatever locks it sees, that it
// leaves the attempts of the first one alone, and that the first one continues.
func TestSecondWorkerOfANameIsRefused(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	first := c.Start("a", func(cfg *workers.NodeConfig) { cfg.OfflineAfter = workertest.Limit })
	name := c.Name("a")
	workertest.Eventually(t, "a heartbeat", func() bool { return c.AwaitState(name, "active").GetLastBeatAt() != nil })
	here, elsewhere, copied := c.NodeConfig("a"), c.NodeConfig("a"), c.NodeConfig("a")
	elsewhere.Elsewhere(t.TempDir())
	locks := t.TempDir()
	copied.Elsewhere(locks)
	leaveLock(t, locks, c.Conn.Fleet, name, first.Incarnation())
	engine := fake.NewSurvivor(v1.TypeContainer, nil, executor.Leftover{ID: "1", Identity: executor.Identity{Node: name, Fleet: c.Conn.Fleet}, Running: true})
	upHere := fmt.Sprintf("(process %d)", os.Getpid())
	for second, want := range map[*workers.NodeConfig]string{&here: "on this machine already", &elsewhere: upHere, &copied: upHere} {
		second.Executors = []executor.Executor{c.Fake, engine}
		if _, err := workers.StartNode(t.Context(), *second); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the second worker: %v, want it refused because it is %s", err, want)
		}
	}
	if removed := engine.Removed(); len(removed) > 0 {
		t.Errorf("a refused worker has ended %v", removed)
	}
	if now := c.AwaitState(name, "active"); now.GetIncarnation() != first.Incarnation() || first.Err() != nil {
		t.Errorf("the first worker: %v, registered: %v", first.Err(), now)
	}
	workertest.CheckRun(t, c.Do(`{name: on, tasks: {x: {type: shell, spec: {command: x}}}}`), "completed", nil)
}

// TestDeadWorkerMakesRoom checks that a new worker can replace one that died without leaving, once that counts as lost.
func TestDeadWorkerMakesRoom(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	name := c.Name("a")
	if _, err := registry.New(c.Conn).Register(t.Context(), &historyv1.NodeRegistration{
		Name: name, Incarnation: "dead", Machine: "elsewhere", OfflineAfter: durationpb.New(2 * time.Second),
	}); err != nil {
		t.Fatal(err)
	}
	c.Start("a")
	if n := c.AwaitState(name, "active"); n.GetIncarnation() == "dead" {
		t.Error("the dead one is still there")
	}
}

// TestOnlyTheIncarnationOfTheLockIsReplacedAtOnce checks that a worker replaces a registered one that is silent before that
// counts as lost, if the lock file names its incarnation, even if that one and later ones were killed before they had an answer, and
// that no lock and no machine proves the death of another one.
func TestOnlyTheIncarnationOfTheLockIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	reg := registry.New(c.Conn)
	one := &historyv1.NodeRegistration{Name: c.Name("a"), Incarnation: "1", Machine: "m", Process: "box (process 7)", OfflineAfter: durationpb.New(workertest.Limit)}
	if _, err := reg.Register(t.Context(), one); err != nil {
		t.Fatal(err)
	}
	for _, refused := range []*historyv1.NodeRegistration{
		{Name: one.Name, Incarnation: "2", Machine: "m", Exclusive: true},
		{Name: one.Name, Incarnation: "2", Machine: "m", Replaces: "0"},
	} {
		if _, err := reg.Register(t.Context(), refused); !errors.Is(err, registry.ErrTaken) || !strings.Contains(err.Error(), "on machine m, in box (process 7)") {
			t.Errorf("%v: %v", refused, err)
		}
	}
	locks := t.TempDir()
	leaveLock(t, locks, c.Conn.Fleet, one.Name, "0", "1", "2")
	n := c.Start("a", func(cfg *workers.NodeConfig) { cfg.Elsewhere(locks) })
	if got := c.AwaitState(one.Name, "active"); got.GetIncarnation() != n.Incarnation() {
		t.Errorf("registered: %v", got)
	}
}

// leaveLock leaves a lock file of a node as processes with these incarnations do that die one after the other while they register.
func leaveLock(t *testing.T, locks, fleet, name string, incarnations ...string) {
	t.Helper()
	for _, incarnation := range incarnations {
		lock, err := node.LockName(locks, workers.NodeFolder(fleet, name))
		if err != nil {
			t.Fatal(err)
		}
		lock.NoteAttempt(incarnation)
		if err := lock.Release(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNodeRegistersAgain checks that a node whose entry the server lost registers again while its tasks continue.
func TestNodeRegistersAgain(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"x": {{Block: true}}})
	n := c.Start("a", func(cfg *workers.NodeConfig) { cfg.OfflineAfter = 2 * time.Second })
	name := c.Name("a")
	h := c.Submit(c.Input(`{name: again, tasks: {x: {type: shell, spec: {command: x}}}}`))
	c.AwaitRunning("x")
	before := c.AwaitState(name, "active")
	if err := c.Conn.TerminateWorkflow(t.Context(), names.NodeWorkflowID(name), "", "a test"); err != nil {
		t.Fatal(err)
	}
	workertest.Eventually(t, "it registers again", func() bool {
		again, err := registry.New(c.Conn).Get(t.Context(), name)
		return err == nil && again.GetIncarnation() == before.GetIncarnation() && again.GetLastBeatAt() != nil
	})
	c.Fake.Release("x")
	workertest.CheckRun(t, h.Wait(), "completed", nil)
	if n.Err() != nil || c.Calls()["x"] != 1 {
		t.Errorf("x ran %d times; node: %v", c.Calls()["x"], n.Err())
	}
}

// TestNodeLosesItsName checks that a node whose name another worker has taken fails with that reason and does not take
// the name back.
func TestNodeLosesItsName(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	// The first worker is cut off, so that the other one is faster.
	l := c.StartBehindLink("a", func(cfg *workers.NodeConfig) { cfg.OfflineAfter = 5 * time.Second })
	workertest.Eventually(t, "a heartbeat", func() bool { return c.AwaitState(c.Name("a"), "active").GetLastBeatAt() != nil })
	l.Cut()
	if err := c.Conn.TerminateWorkflow(t.Context(), names.NodeWorkflowID(c.Name("a")), "", "a test"); err != nil {
		t.Fatal(err)
	}
	second := c.Start("a", func(cfg *workers.NodeConfig) {
		cfg.OfflineAfter = 2 * time.Second
		cfg.Elsewhere(t.TempDir())
	})
	l.Mend()
	first := l.Node
	select {
	case <-first.Failed():
	case <-time.After(workertest.Limit):
		t.Fatal("the first worker continues")
	}
	if !errors.Is(first.Err(), registry.ErrTaken) || second.Err() != nil {
		t.Errorf("first: %v, second: %v", first.Err(), second.Err())
	}
	first.Stop()
	workertest.CheckRun(t, c.Do(`{name: on, tasks: {x: {type: shell, spec: {command: x}}}}`), "completed", nil)
}

// TestEntryIsForgottenAndContinued checks that a node that is offline for long enough is forgotten, and that an entry
// with a long history continues as new.
func TestEntryIsForgottenAndContinued(t *testing.T) {
	t.Parallel()
	y := workertest.Own(t, workers.ControlConfig{Registrar: nodeworkflow.Registrar{ForgetAfter: 2 * time.Second, HistoryEvents: 30}})
	c := y.Nodes(t, workertest.Script{"x": {fake.Exit(0)}})
	name := c.Name("a")
	execution := func() string {
		d := workertest.Describe(c.T, c.Conn, names.NodeWorkflowID(name), "")
		return d.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	}
	c.Start("a").Stop()
	first := execution()
	workertest.Eventually(t, "a fresh history", func() bool {
		c.Start("a").Stop()
		return execution() != first
	})
	n := c.Start("a")
	if seen := c.AwaitState(name, "active"); seen.GetRegisteredAt() == nil || len(seen.GetLabels()) == 0 {
		t.Errorf("after the fresh start: %v", seen)
	}
	workertest.CheckRun(t, c.Do(`{name: on, tasks: {x: {type: shell, spec: {command: x}}}}`), "completed", nil)
	n.Stop()
	workertest.Eventually(t, "it is forgotten", func() bool {
		_, err := registry.New(c.Conn).Get(context.WithoutCancel(t.Context()), name)
		return errors.Is(err, registry.ErrUnknown)
	})
}
