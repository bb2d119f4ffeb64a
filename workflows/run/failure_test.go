package run_test

import (
	"strings"
	"testing"

	"switchyard/activities/executor/fake"
	"switchyard/workers/workertest"
)

func TestFailedRunNamesTheTask(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"test": {fake.Exit(1)}})
	c.Start("a")
	h := c.Submit(c.Input(`{name: named, tasks: {
		test: {type: shell, spec: {command: x}, retry: {maxRetries: 0}}, deploy: {type: shell, spec: {command: x}, dependsOn: [test]}}}`))
	run := h.Wait()
	workertest.CheckRun(t, run, "failed", map[string]string{"test": "failed exit_code", "deploy": "skipped upstream"})
	d := workertest.Describe(c.T, c.Conn, h.ID, "")
	events := h.History("")
	message := events[len(events)-1].GetWorkflowExecutionFailedEventAttributes().GetFailure().GetMessage()
	const want = `task "test" failed: exit code 1 (attempt 0 on `
	if s := d.GetWorkflowExecutionInfo().GetStatus().String(); s != "Failed" || !strings.HasPrefix(message, want) || strings.Contains(message, "\n") {
		t.Errorf("Temporal shows %s: %q, want Failed: %q...", s, message, want)
	}
	if run.GetReason() != "task_failed" || run.GetError() != message {
		t.Errorf("reason %q, error %q", run.GetReason(), run.GetError())
	}
}
