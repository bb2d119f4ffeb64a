package workers

import (
	"context"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/registry"
	v1 "switchyard/proto/switchyard/v1"
)

// TestDrain checks that a draining node finishes running tasks, hands waiting ones back, and gets no new ones, even
// after a restart of its worker. After an undrain it gets tasks again.
func TestDrain(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"long": {{Block: true}}})
	reg := registry.New(c.conn)
	name := c.name("a")
	n := c.start("a", func(cfg *NodeConfig) { cfg.MaxParallel = 1 })
	h := c.submit(c.input(`{name: drain, tasks: {long: {type: shell, priority: 9, spec: {command: x}}, after: {type: shell, spec: {command: x}, dependsOn: [long]}}}`))
	c.running("long")
	drained, err := reg.Drain(t.Context(), name, &v1.NodeDrain{Reason: "repair"})
	if err != nil || drained.GetState() != "draining" || drained.GetReason() != "repair" || drained.GetDrained() {
		t.Fatalf("drain: %v, %v", drained, err)
	}
	c.start("b")
	if got, err := reg.Get(t.Context(), name); err != nil || got.GetDrained() {
		t.Errorf("while a task runs: %v, %v", got, err)
	}
	c.fake.Release("long")
	run := h.wait()
	want(t, run, "completed", nil)
	if long, after := run.Tasks["long"], run.Tasks["after"]; long.GetNode() != name || after.GetNode() != c.name("b") {
		t.Errorf("long ran on %s, after on %s", long.GetNode(), after.GetNode())
	}
	eventually(t, "nothing is left", func() bool {
		got, err := reg.Get(t.Context(), name)
		return err == nil && got.GetDrained()
	})

	n.Stop()
	c.state(name, "offline")
	c.start("a")
	if got := c.state(name, "draining"); got.GetReason() != "repair" {
		t.Errorf("after a restart: %v", got)
	}
	for _, test := range []struct {
		drain *v1.NodeDrain
		want  string
	}{
		{&v1.NodeDrain{Deadline: timestamppb.New(time.Now().Add(time.Hour)), By: "bob"}, "repair"},
		{&v1.NodeDrain{Reason: "new disk", By: "bob"}, "by bob: new disk"},
		{&v1.NodeDrain{By: "ann"}, "by bob: new disk"},
	} {
		if got, err := reg.Drain(t.Context(), name, test.drain); err != nil || got.GetReason() != test.want {
			t.Errorf("drained again, %v: %v, %v; want %q", test.drain, got, err, test.want)
		}
	}
	if got, err := reg.Undrain(t.Context(), name); err != nil || got.GetState() != "active" {
		t.Errorf("undrain: %v, %v", got, err)
	}
	want(t, c.do(`{name: back, tasks: {x: {type: shell, spec: {command: x}, constraints: {targetNode: `+name+`}}}}`), "completed", nil)
}

// TestDrainDeadline checks that a drain moves running tasks at its deadline without spending an attempt.
func TestDrainDeadline(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"long": {{Block: true}, {}}})
	name := c.name("a")
	c.start("a")
	h := c.submit(c.input(`{name: deadline, tasks: {long: {type: shell, spec: {command: x}, retry: {maxRetries: 0}}}}`))
	c.running("long")
	c.start("b")
	eventually(t, "the other node is known", func() bool { return c.control.knows(c.name("b")) })
	if _, err := registry.New(c.conn).Drain(t.Context(), name, &v1.NodeDrain{Deadline: timestamppb.Now()}); err != nil {
		t.Fatal(err)
	}
	run := h.wait()
	want(t, run, "completed", nil)
	if long := run.Tasks["long"]; long.GetNode() != c.name("b") || long.GetAttempt() != 0 {
		t.Errorf("moved: %v", long)
	}
	eventually(t, "nothing is left", func() bool {
		got, err := registry.New(c.conn).Get(t.Context(), name)
		return err == nil && got.GetDrained()
	})
}

// TestDrainBeforeStopLetsTasksFinish checks that a worker that shuts down lets its tasks finish and gets no new ones.
func TestDrainBeforeStopLetsTasksFinish(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"long": {{Block: true}}})
	name := c.name("a")
	n := c.start("a")
	h := c.submit(c.input(`{name: shutdown, tasks: {long: {type: shell, spec: {command: x}}, after: {type: shell, spec: {command: x}, dependsOn: [long]}}}`))
	c.running("long")
	c.start("b")
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.Drain(context.Background(), limit)
		n.Stop()
	}()
	c.state(name, "draining")
	eventually(t, "the leader knows that", func() bool { return c.control.knows(c.name("b")) })
	c.fake.Release("long")
	run := h.wait()
	want(t, run, "completed", nil)
	if long, after := run.Tasks["long"], run.Tasks["after"]; long.GetNode() != name || long.GetAttempt() != 0 || after.GetNode() != c.name("b") {
		t.Errorf("long ran on %s, after on %s", long.GetNode(), after.GetNode())
	}
	<-done
	if got := c.state(name, "offline"); got.GetReason() != "left" {
		t.Errorf("after the shutdown: %v", got)
	}
}

// TestDrainBeforeStopIsCutShort checks that cutting a shutdown short moves the running tasks at once.
func TestDrainBeforeStopIsCutShort(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"long": {{Block: true}, {}}})
	n := c.start("a")
	h := c.submit(c.input(`{name: short, tasks: {long: {type: shell, spec: {command: x}, retry: {maxRetries: 0}}}}`))
	c.running("long")
	c.start("b")
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		n.Drain(ctx, time.Hour)
		n.Stop()
	}()
	c.state(c.name("a"), "draining")
	cancel()
	<-done
	run := h.wait()
	want(t, run, "completed", nil)
	if long := run.Tasks["long"]; long.GetNode() != c.name("b") || long.GetAttempt() != 0 {
		t.Errorf("moved: %v", long)
	}
}
