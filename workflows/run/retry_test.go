package run_test

import (
	"strings"
	"testing"
	"time"

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

// TestRefusedOutputIsRetriedLikeAnExitCode checks that an attempt whose output or context update is refused is retried, because the
// next one may write something else, and that retry.when can forbid it.
func TestRefusedOutputIsRetriedLikeAnExitCode(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{
		"output": {{Output: "{"}, {Output: "n=1"}}, "update": {{ContextUpdate: "{"}, {}}, "once": {{Output: "{"}, {}}, "spent": {{Output: "{"}},
	})
	c.Start("n")
	run := c.Do(`{name: refused, defaults: {retry: {maxRetries: 1, backoffMs: 1}}, tasks: {
		output: {type: shell, spec: {command: x}}, update: {type: shell, spec: {command: x}}, spent: {type: shell, spec: {command: x}},
		once: {type: shell, spec: {command: x}, retry: {maxRetries: 1, backoffMs: 1, when: "attempt.reason != 'output'"}}}}`)
	workertest.CheckRun(t, run, "failed", map[string]string{"output": "completed", "update": "completed", "once": "failed output", "spent": "dead_letter output"})
	if n := c.Calls(); n["output"] != 2 || n["update"] != 2 || n["once"] != 1 || n["spent"] != 2 {
		t.Errorf("executions: %v", n)
	}
}

func TestRetryWaitsForItsBackoff(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{
		"flaky": {fake.Exit(1), fake.Exit(2), {Stdout: "at last", Result: fake.Exit(0).Result}},
		"dead":  {{Stderr: "cannot\nno such host\n", Result: fake.Exit(7).Result}},
		"once":  {fake.Exit(3)},
	})
	c.Start("a")
	h := c.Submit(c.Input(`{name: retry, tasks: {
		flaky: {type: shell, spec: {command: x}, retry: {maxRetries: 3, backoffMs: 30}},
		dead: {type: shell, spec: {command: x}, retry: {maxRetries: 2, backoffMs: 1}},
		once: {type: shell, spec: {command: x}, retry: {maxRetries: 0}},
		below: {type: shell, spec: {command: x}, dependsOn: [dead]}}}`))
	run := h.Wait()
	workertest.CheckRun(t, run, "failed", map[string]string{
		"flaky": "completed", "dead": "dead_letter exit_code", "once": "failed exit_code", "below": "skipped upstream"})
	if n := c.Calls(); n["flaky"] != 3 || n["dead"] != 3 || n["once"] != 1 || n["below"] != 0 {
		t.Errorf("executions: %v", n)
	}
	flaky, dead, once := run.Tasks["flaky"], run.Tasks["dead"], run.Tasks["once"]
	if flaky.GetAttempt() != 2 || flaky.GetResult().GetStdout() != "at last" || flaky.GetError() != "" {
		t.Errorf("flaky: %v", flaky)
	}
	if dead.GetAttempt() != 2 || dead.GetError() != "exit code 7: no such host\nstandard error before that:\ncannot" || dead.GetResult().GetExitCode() != 7 {
		t.Errorf("dead: %v", dead)
	}
	if once.GetAttempt() != 0 || once.GetResult().GetExitCode() != 3 || once.GetError() != "exit code 3" {
		t.Errorf("once: %v", once)
	}
	// The second back-off is twice the first: at least 30 ms and 60 ms.
	var flakyCalls []string
	for _, call := range c.Fake.Calls() {
		if call.Task == "flaky" {
			flakyCalls = append(flakyCalls, call.Attempt.Env["SWITCHYARD_ATTEMPT"])
		}
	}
	if got := strings.Join(flakyCalls, " "); got != "0 1 2" {
		t.Errorf("SWITCHYARD_ATTEMPT of flaky: %s", got)
	}
	if took := flaky.GetCompletedAt().AsTime().Sub(run.GetCreatedAt().AsTime()); took < 90*time.Millisecond {
		t.Errorf("flaky ended after %v, before its back-offs were over", took)
	}
}
