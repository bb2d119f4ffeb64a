package workers_test

import (
	"context"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/registry"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
)

// TestDrain checks that a draining node finishes running tasks, hands waiting ones back, and gets no new ones, even
// after a restart of its worker. After an undrain it gets tasks again.
func TestDrain(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"long": {{Block: true}}})
	reg := registry.New(c.Conn)
	name := c.Name("a")
	n := c.Start("a", func(cfg *workers.NodeConfig) { cfg.MaxParallel = 1 })
	h := c.Submit(c.Input(`{name: drain, tasks: {long: {type: shell, priority: 9, spec: {command: x}}, after: {type: shell, spec: {command: x}, dependsOn: [long]}}}`))
	c.AwaitRunning("long")
	drained, err := reg.Drain(t.Context(), name, &historyv1.NodeDrain{Reason: "repair"})
	if err != nil || drained.GetState() != "draining" || drained.GetReason() != "repair" || drained.GetDrained() {
		t.Fatalf("drain: %v, %v", drained, err)
	}
	c.Start("b")
	if got, err := reg.Get(t.Context(), name); err != nil || got.GetDrained() {
		t.Errorf("while a task runs: %v, %v", got, err)
	}
	c.Fake.Release("long")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", nil)
	if long, after := run.Tasks["long"], run.Tasks["after"]; long.GetNode() != name || after.GetNode() != c.Name("b") {
		t.Errorf("long ran on %s, after on %s", long.GetNode(), after.GetNode())
	}
	workertest.Eventually(t, "nothing is left", func() bool {
		got, err := reg.Get(t.Context(), name)
		return err == nil && got.GetDrained()
	})

	n.Stop()
	c.AwaitState(name, "offline")
	c.Start("a")
	if got := c.AwaitState(name, "draining"); got.GetReason() != "repair" {
		t.Errorf("after a restart: %v", got)
	}
	for _, test := range []struct {
		drain *historyv1.NodeDrain
		want  string
	}{
		{&historyv1.NodeDrain{Deadline: timestamppb.New(time.Now().Add(time.Hour)), By: "bob"}, "repair"},
		{&historyv1.NodeDrain{Reason: "new disk", By: "bob"}, "by bob: new disk"},
		{&historyv1.NodeDrain{By: "ann"}, "by bob: new disk"},
	} {
		if got, err := reg.Drain(t.Context(), name, test.drain); err != nil || got.GetReason() != test.want {
			t.Errorf("drained again, %v: %v, %v; want %q", test.drain, got, err, test.want)
		}
	}
	if got, err := reg.Undrain(t.Context(), name); err != nil || got.GetState() != "active" {
		t.Errorf("undrain: %v, %v", got, err)
	}
	workertest.CheckRun(t, c.Do(`{name: back, tasks: {x: {type: shell, spec: {command: x}, constraints: {targetNode: `+name+`}}}}`), "completed", nil)
}

// TestDrainDeadline checks that a drain moves running tasks at its deadline without spending an attempt.
func TestDrainDeadline(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"long": {{Block: true}, {}}})
	name := c.Name("a")
	c.Start("a")
	h := c.Submit(c.Input(`{name: deadline, tasks: {long: {type: shell, spec: {command: x}, retry: {maxRetries: 0}}}}`))
	c.AwaitRunning("long")
	c.Start("b")
	workertest.Eventually(t, "the other node is known", func() bool { return c.Control.Knows(c.Name("b")) })
	if _, err := registry.New(c.Conn).Drain(t.Context(), name, &historyv1.NodeDrain{Deadline: timestamppb.Now()}); err != nil {
		t.Fatal(err)
	}
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", nil)
	if long := run.Tasks["long"]; long.GetNode() != c.Name("b") || long.GetAttempt() != 0 {
		t.Errorf("moved: %v", long)
	}
	workertest.Eventually(t, "nothing is left", func() bool {
		got, err := registry.New(c.Conn).Get(t.Context(), name)
		return err == nil && got.GetDrained()
	})
}

// TestDrainBeforeStopLetsTasksFinish checks that a worker that shuts down lets its tasks finish and gets no new ones.
func TestDrainBeforeStopLetsTasksFinish(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"long": {{Block: true}}})
	name := c.Name("a")
	n := c.Start("a")
	h := c.Submit(c.Input(`{name: shutdown, tasks: {long: {type: shell, spec: {command: x}}, after: {type: shell, spec: {command: x}, dependsOn: [long]}}}`))
	c.AwaitRunning("long")
	c.Start("b")
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.Drain(context.Background(), workertest.Limit)
		n.Stop()
	}()
	c.AwaitState(name, "draining")
	workertest.Eventually(t, "the leader knows that", func() bool { return c.Control.Knows(c.Name("b")) })
	c.Fake.Release("long")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", nil)
	if long, after := run.Tasks["long"], run.Tasks["after"]; long.GetNode() != name || long.GetAttempt() != 0 || after.GetNode() != c.Name("b") {
		t.Errorf("long ran on %s, after on %s", long.GetNode(), after.GetNode())
	}
	<-done
	if got := c.AwaitState(name, "offline"); got.GetReason() != "left" {
		t.Errorf("after the shutdown: %v", got)
	}
}

// TestDrainBeforeStopIsCutShort checks that cutting a shutdown short moves the running tasks at once.
func TestDrainBeforeStopIsCutShort(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"long": {{Block: true}, {}}})
	n := c.Start("a")
	h := c.Submit(c.Input(`{name: short, tasks: {long: {type: shell, spec: {command: x}, retry: {maxRetries: 0}}}}`))
	c.AwaitRunning("long")
	c.Start("b")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.Drain(ctx, time.Hour)
		n.Stop()
	}()
	c.AwaitState(c.Name("a"), "draining")
	cancel()
	<-done
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", nil)
	if long := run.Tasks["long"]; long.GetNode() != c.Name("b") || long.GetAttempt() != 0 {
		t.Errorf("moved: %v", long)
	}
}
