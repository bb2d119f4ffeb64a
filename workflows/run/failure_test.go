package run_test

import (
	"errors"
	"strings"
	"testing"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
)

// TestTaskWithInvalidSpecIsNotRetried checks that a task that can never start is not retried.
func TestTaskWithInvalidSpecIsNotRetried(t *testing.T) {
	t.Parallel()
	bad := fake.Step{StartErr: &executor.StartError{ExitCode: 126, BadSpec: true, Err: errors.New("command[1] is not a string")}}
	c := workertest.Shared(t).Nodes(t, workertest.Script{"bad": {bad}})
	c.Start("n")
	run := c.Do(`{name: bad, tasks: {bad: {type: shell, spec: {command: x}, retry: {maxRetries: 3, backoffMs: 1}}}}`)
	workertest.CheckRun(t, run, "failed", map[string]string{"bad": "failed bad_spec"})
	if n := c.Calls()["bad"]; n != 1 || run.Tasks["bad"].GetResult().GetExitCode() != 126 {
		t.Errorf("%d attempts: %v", n, run.Tasks["bad"])
	}
}

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

func TestFailurePolicyDecidesWhatStillRuns(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		document string
		script   workertest.Script
		state    string
		tasks    map[string]string
	}{
		"continue": {
			`{name: p, tasks: {bad: {type: shell, spec: {command: x}, retry: {maxRetries: 0}}, below: {type: shell, spec: {command: x}, dependsOn: [bad]},
				good: {type: shell, spec: {command: x}}, after: {type: shell, spec: {command: x}, dependsOn: [good]}}}`,
			workertest.Script{"bad": {fake.Exit(1)}}, "failed",
			map[string]string{"bad": "failed", "below": "skipped upstream", "good": "completed", "after": "completed"},
		},
		"halt": {
			`{name: p, failurePolicy: halt, tasks: {bad: {type: shell, spec: {command: x}, retry: {maxRetries: 0}},
				slow: {type: shell, spec: {command: x}}, after: {type: shell, spec: {command: x}, dependsOn: [slow]},
				tidy: {type: shell, spec: {command: x}, dependsOn: [bad], onFailure: run}}}`,
			workertest.Script{"bad": {fake.Exit(1)}, "slow": {{Block: true}}}, "failed",
			map[string]string{"bad": "failed", "slow": "completed", "after": "skipped halt", "tidy": "completed"},
		},
		"onFailure run": {
			`{name: p, tasks: {bad: {type: shell, spec: {command: x}, retry: {maxRetries: 0}},
				always: {type: shell, spec: {command: x}, dependsOn: [bad], onFailure: run}}}`,
			workertest.Script{"bad": {fake.Exit(1)}}, "failed", map[string]string{"bad": "failed", "always": "completed"},
		},
		"continueOnError": {
			`{name: p, tasks: {bad: {type: shell, spec: {command: x}, retry: {maxRetries: 0}, continueOnError: true},
				below: {type: shell, spec: {command: x}, dependsOn: [bad]}}}`,
			workertest.Script{"bad": {fake.Exit(1)}}, "completed", map[string]string{"bad": "failed", "below": "completed"},
		},
		"out of memory": {
			`{name: p, tasks: {big: {type: shell, spec: {command: x}, retry: {maxRetries: 0}}}}`,
			workertest.Script{"big": {{Result: workertest.OutOfMemory()}}}, "failed", map[string]string{"big": "killed_oom oom"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := workertest.Shared(t).Nodes(t, test.script)
			c.Start("a")
			h := c.Submit(c.Input(test.document))
			if _, blocks := test.script["slow"]; blocks {
				h.AwaitTask("bad", func(bad *v1.Task) bool { return bad.GetState() == "failed" })
				c.AwaitRunning("slow")
				c.Fake.Release("slow")
			}
			workertest.CheckRun(t, h.Wait(), test.state, test.tasks)
		})
	}
}
