package run_test

import (
	"strings"
	"testing"

	"switchyard/activities/executor/fake"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
)

// TestDeadlineEndsAllAttempts checks that deadlines end a task with all its attempts, a fan-out, and a run.
func TestDeadlineEndsAllAttempts(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"slow": {{Block: true}}, "wide": {{}, {Block: true}}, "fails": {fake.Exit(1)}})
	c.Start("n")
	h := c.Submit(c.Input(`{name: deadlines, tasks: {
		slow: {type: shell, spec: {command: x}, deadline: 900ms, retry: {backoffMs: 1}},
		fails: {type: shell, spec: {command: x}, deadline: 1s, retry: {maxRetries: 9, backoffMs: 60000}},
		wide: {type: shell, spec: {command: x}, parallel: 3, concurrency: 1, deadline: 10s},
		fine: {type: shell, spec: {command: x}, deadline: 1h},
		after: {type: shell, spec: {command: x}, dependsOn: [fine]}}}`))
	run := h.Wait()
	workertest.CheckRun(t, run, "failed", map[string]string{"slow": "failed deadline", "fails": "failed deadline", "wide": "failed deadline", "fine": "completed", "after": "completed"})
	// A slow machine may not start them in time.
	if c.Calls()["slow"] > 1 || c.Calls()["fails"] > 1 || !strings.Contains(run.Tasks["slow"].GetError(), "900ms") {
		t.Errorf("executions %v, %s", c.Calls(), workertest.Summary(run))
	}
	if got := instances(run.Tasks["wide"]); got != "completed failed failed" {
		t.Errorf("wide: %s", got)
	}
	workertest.Replay(t, "deadline", limits.Run{}, h.History(""))

	h = c.Submit(c.Input(`{name: deadline, deadline: 400ms, tasks: {slow: {type: shell, spec: {command: x}}, last: {type: shell, spec: {command: x}, dependsOn: [slow]}}}`))
	run = h.Wait()
	workertest.CheckRun(t, run, "failed", map[string]string{"slow": "cancelled", "last": "cancelled"})
	if run.GetReason() != "deadline" || !strings.Contains(run.GetError(), "400ms") {
		t.Errorf("the run ended so: %s %s", run.GetReason(), run.GetError())
	}
	workertest.Replay(t, "deadline-run", limits.Run{}, h.History(""))
}
