package e2e

import (
	"fmt"
	"testing"
	"time"

	"switchyard/dev/testneeds"
)

// TestLongPauseOutlastsTimeout checks that the time in which a task is paused does not count towards its time-out.
func TestLongPauseOutlastsTimeout(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	s, dir := shared(t), t.TempDir()
	id := s.Submit(t, fmt.Sprintf("name: paused\ntasks: { wait: { type: shell, resources: { cores: 0 }, timeout: 45s, spec: { command: '%s' } } }\n", gate(dir, "gate")))
	s.AwaitTask(t, id, "wait", "running")
	do(t, s.Gateway, 0, "runs", "pause", id, "wait")
	time.Sleep(46 * time.Second)
	open(t, dir, "gate")
	if state := s.Get(t, id).Tasks["wait"].State; state != "paused" {
		t.Errorf("the task is %s", state)
	}
	do(t, s.Gateway, 0, "runs", "resume", id, "wait")
	if d := s.End(t, id); d.State != "completed" {
		t.Errorf("the run is %s", d.State)
	}
}
