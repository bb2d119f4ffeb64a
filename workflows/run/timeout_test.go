package run_test

import (
	"fmt"
	"testing"
	"time"

	"switchyard/workers/workertest"
	"switchyard/workflows/names"
)

// TestTaskHasItsOwnHeartbeatTimeout checks that a task can have its own heartbeat time-out.
func TestTaskHasItsOwnHeartbeatTimeout(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("n")
	in := c.Input(`{name: patient, tasks: {
		a: {type: shell, spec: {command: x}, heartbeatTimeout: 2m}, b: {type: shell, spec: {command: x}},
		each: {type: shell, spec: {command: x}, parallel: 2, batch: 2, heartbeatTimeout: 30s}}}`)
	in.Options.HeartbeatTimeout = nil // the default
	h := c.Submit(in)
	workertest.CheckRun(t, h.Wait(), "completed", nil)
	got := map[string]time.Duration{}
	for _, e := range h.History("") {
		if s := scheduled(e, names.ExecuteActivity); s != nil {
			got[s.GetActivityId()] = s.GetHeartbeatTimeout().AsDuration()
		}
	}
	if fmt.Sprint(got) != "map[a#1:2m0s b#1:15s each[0]#1:30s]" {
		t.Errorf("heartbeat time-outs %v", got)
	}
}
