package workers

import (
	"strings"
	"testing"
	"time"

	"switchyard/activities/executor/fake"
	v1 "switchyard/proto/switchyard/v1"
)

func TestShapes(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ document, before string }{
		"chain": {`{name: chain, tasks: {
			a: {type: shell, spec: {command: x}}, b: {type: shell, spec: {command: x}, dependsOn: [a]},
			c: {type: shell, spec: {command: x}, dependsOn: [b]}}}`, "a<b b<c"},
		"diamond": {`{name: diamond, tasks: {
			top: {type: shell, spec: {command: x}}, left: {type: shell, spec: {command: x}, dependsOn: [top]},
			right: {type: shell, spec: {command: x}, dependsOn: [top]},
			bottom: {type: shell, spec: {command: x}, dependsOn: [left, right]}}}`, "top<left top<right left<bottom right<bottom"},
		"fan-out": {`{name: fan, tasks: {
			root: {type: shell, spec: {command: x}},
			f1: {type: shell, spec: {command: x}, dependsOn: [root]}, f2: {type: shell, spec: {command: x}, dependsOn: [root]},
			f3: {type: shell, spec: {command: x}, dependsOn: [root]}, f4: {type: shell, spec: {command: x}, dependsOn: [root]}}}`,
			"root<f1 root<f2 root<f3 root<f4"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := shared(t).workers(t, nil)
			c.start("a")
			run := c.do(test.document)
			want(t, run, "completed", nil)
			started := map[string]int{}
			for i, call := range c.fake.Calls() {
				started[call.Task] = i + 1
			}
			if len(started) != len(run.GetTasks()) || len(c.fake.Calls()) != len(run.GetTasks()) {
				t.Errorf("%d tasks, of which these ran: %v", len(run.GetTasks()), started)
			}
			for name, task := range run.GetTasks() {
				if task.GetState() != "completed" || task.GetNode() != c.name("a") || task.GetStartedAt() == nil || task.GetCompletedAt() == nil {
					t.Errorf("task %s: %v", name, task)
				}
			}
			for pair := range strings.FieldsSeq(test.before) {
				first, second, _ := strings.Cut(pair, "<")
				if started[first] >= started[second] {
					t.Errorf("%s started as number %d, %s as %d", first, started[first], second, started[second])
				}
			}
		})
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{
		"flaky": {fake.Exit(1), fake.Exit(2), {Stdout: "at last", Result: fake.Exit(0).Result}},
		"dead":  {{Stderr: "cannot\nno such host\n", Result: fake.Exit(7).Result}},
		"once":  {fake.Exit(3)},
	})
	c.start("a")
	h := c.submit(c.input(`{name: retry, tasks: {
		flaky: {type: shell, spec: {command: x}, retry: {maxRetries: 3, backoffMs: 30}},
		dead: {type: shell, spec: {command: x}, retry: {maxRetries: 2, backoffMs: 1}},
		once: {type: shell, spec: {command: x}, retry: {maxRetries: 0}},
		below: {type: shell, spec: {command: x}, dependsOn: [dead]}}}`))
	run := h.wait()
	want(t, run, "failed", map[string]string{
		"flaky": "completed", "dead": "dead_letter exit_code", "once": "failed exit_code", "below": "skipped upstream"})
	if n := c.calls(); n["flaky"] != 3 || n["dead"] != 3 || n["once"] != 1 || n["below"] != 0 {
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
	for _, call := range c.fake.Calls() {
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

func TestFailedRunNamesTheTask(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"test": {fake.Exit(1)}})
	c.start("a")
	h := c.submit(c.input(`{name: named, tasks: {
		test: {type: shell, spec: {command: x}, retry: {maxRetries: 0}}, deploy: {type: shell, spec: {command: x}, dependsOn: [test]}}}`))
	run := h.wait()
	want(t, run, "failed", map[string]string{"test": "failed exit_code", "deploy": "skipped upstream"})
	d := describe(c.t, c.conn, h.id, "")
	events := h.history("")
	message := events[len(events)-1].GetWorkflowExecutionFailedEventAttributes().GetFailure().GetMessage()
	const want = `task "test" failed: exit code 1 (attempt 0 on `
	if s := d.GetWorkflowExecutionInfo().GetStatus().String(); s != "Failed" || !strings.HasPrefix(message, want) || strings.Contains(message, "\n") {
		t.Errorf("Temporal shows %s: %q, want Failed: %q...", s, message, want)
	}
	if run.GetReason() != "task_failed" || run.GetError() != message {
		t.Errorf("reason %q, error %q", run.GetReason(), run.GetError())
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"slow": {{Block: true}}})
	c.start("a")
	run := c.do(`{name: timeout, tasks: {slow: {type: shell, spec: {command: x}, timeout: 50ms, retry: {maxRetries: 1, backoffMs: 1}}}}`)
	want(t, run, "failed", map[string]string{"slow": "dead_letter timeout"})
	if task := run.Tasks["slow"]; c.calls()["slow"] != 2 || task.GetAttempt() != 1 || task.GetResult().GetExitCode() != 143 {
		t.Errorf("%d executions, then %v", c.calls()["slow"], task)
	}
}

func TestFailurePolicies(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		document string
		script   script
		state    string
		tasks    map[string]string
	}{
		"continue": {
			`{name: p, tasks: {bad: {type: shell, spec: {command: x}, retry: {maxRetries: 0}}, below: {type: shell, spec: {command: x}, dependsOn: [bad]},
				good: {type: shell, spec: {command: x}}, after: {type: shell, spec: {command: x}, dependsOn: [good]}}}`,
			script{"bad": {fake.Exit(1)}}, "failed",
			map[string]string{"bad": "failed", "below": "skipped upstream", "good": "completed", "after": "completed"},
		},
		"halt": {
			`{name: p, failurePolicy: halt, tasks: {bad: {type: shell, spec: {command: x}, retry: {maxRetries: 0}},
				slow: {type: shell, spec: {command: x}}, after: {type: shell, spec: {command: x}, dependsOn: [slow]},
				tidy: {type: shell, spec: {command: x}, dependsOn: [bad], onFailure: run}}}`,
			script{"bad": {fake.Exit(1)}, "slow": {{Block: true}}}, "failed",
			map[string]string{"bad": "failed", "slow": "completed", "after": "skipped halt", "tidy": "completed"},
		},
		"onFailure run": {
			`{name: p, tasks: {bad: {type: shell, spec: {command: x}, retry: {maxRetries: 0}},
				always: {type: shell, spec: {command: x}, dependsOn: [bad], onFailure: run}}}`,
			script{"bad": {fake.Exit(1)}}, "failed", map[string]string{"bad": "failed", "always": "completed"},
		},
		"continueOnError": {
			`{name: p, tasks: {bad: {type: shell, spec: {command: x}, retry: {maxRetries: 0}, continueOnError: true},
				below: {type: shell, spec: {command: x}, dependsOn: [bad]}}}`,
			script{"bad": {fake.Exit(1)}}, "completed", map[string]string{"bad": "failed", "below": "completed"},
		},
		"out of memory": {
			`{name: p, tasks: {big: {type: shell, spec: {command: x}, retry: {maxRetries: 0}}}}`,
			script{"big": {{Result: executorOOM()}}}, "failed", map[string]string{"big": "killed_oom oom"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := shared(t).workers(t, test.script)
			c.start("a")
			h := c.submit(c.input(test.document))
			if _, blocks := test.script["slow"]; blocks {
				h.until("bad", func(bad *v1.Task) bool { return bad.GetState() == "failed" })
				c.running("slow")
				c.fake.Release("slow")
			}
			want(t, h.wait(), test.state, test.tasks)
		})
	}
}
