package run_test

import (
	"testing"
	"time"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
)

// TestStopSignalReachesTheExecutor checks that an attempt is stopped as its task says, and otherwise as usual.
func TestStopSignalReachesTheExecutor(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"a": {{Block: true}}, "b": {{Block: true}}, "each": {{}, {}}})
	c.Start("n")
	h := c.Submit(c.Input(`
name: stop
defaults: { type: shell, stop: { grace: 90s } }
tasks:
  a: { spec: { command: x }, stop: { signal: SIGINT } }
  b: { spec: { command: x } }
  each: { spec: { command: x }, parallel: 2, batch: 2, stop: { signal: SIGHUP, grace: 2s } }
`))
	c.AwaitRunning("a")
	c.AwaitRunning("b")
	h.AwaitTask("each", func(x *v1.Task) bool { return x.GetState() == "completed" })
	h.Cancel(nil)
	workertest.CheckRun(t, h.Wait(), "cancelled", nil)
	type ending struct {
		signal string
		grace  time.Duration
	}
	want := map[string]ending{"a": {"SIGINT", 90 * time.Second}, "b": {"", 90 * time.Second}, "each": {"SIGHUP", 2 * time.Second}}
	for _, call := range c.Fake.Calls() {
		if got := (ending{call.Attempt.Signal, call.Attempt.Grace}); got != want[call.Task] {
			t.Errorf("%s is stopped with %v, want %v", call.Task, got, want[call.Task])
		}
	}
	workertest.Replay(t, "stop", limits.Run{}, h.History(""))
}
