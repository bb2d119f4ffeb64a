package run_test

import (
	"testing"

	"switchyard/activities/executor/fake"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
)

func TestRetryWhenDecidesWhetherAttemptIsRetried(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{
		"net":  {{Stderr: "connection reset\n", Result: fake.Exit(1).Result}, {}},
		"code": {fake.Exit(2), fake.Exit(64), {}},
	})
	c.Start("n")
	h := c.Submit(c.Input(`{name: when, tasks: {
		net: {type: shell, spec: {command: x}, retry: {backoffMs: 1, when: "attempt.stderr.contains('reset')"}},
		code: {type: shell, spec: {command: x}, retry: {backoffMs: 1, when: "attempt.exitCode < 64 && attempt.reason == 'exit_code'"}}}}`))
	run := h.Wait()
	workertest.CheckRun(t, run, "failed", map[string]string{"net": "completed", "code": "failed exit_code"})
	if c.Calls()["net"] != 2 || c.Calls()["code"] != 2 || run.Tasks["code"].GetAttempt() != 1 {
		t.Errorf("executions: %v", c.Calls())
	}
	workertest.Replay(t, "retry-when", limits.Run{}, h.History(""))
}
