package run_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchyard/activities/executor/fake"
	"switchyard/dev/testneeds"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
)

func TestConditionDecidesWhetherTaskRuns(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{
		"test": {{Stdout: "ran 10 tests\n0 failures\n", Output: `{"passed": 10}`}},
		"bad":  {fake.Exit(3)},
	})
	c.Start("a")
	run := c.Do(`
name: conditions
context: { channel: stable }
tasks:
  test: { type: shell, spec: { command: x } }
  bad: { type: shell, spec: { command: x }, retry: { maxRetries: 0 } }
  yes: { type: shell, spec: { command: x }, dependsOn: [test], condition: "parent.test.exitCode == 0 && parent.test.stdout.contains('0 failures')" }
  no: { type: shell, spec: { command: x }, dependsOn: [test], condition: parent.test.output.passed == 11.0 }
  below: { type: shell, spec: { command: x }, dependsOn: [no] }
  wrong: { type: shell, spec: { command: x }, dependsOn: [test], condition: parent.test.output.missing == 1.0 }
  mend: { type: shell, spec: { command: x }, dependsOn: [bad], condition: "parent.bad.state == 'failed' && parent.bad.exitCode == 3" }
  context: { type: shell, spec: { command: x }, condition: workflow.context.channel == 'stable' && workflow.runId.startsWith('conditions-') }
  far: { type: shell, spec: { command: x }, dependsOn: [yes], condition: parent.test.output.passed == 10.0 }
  never: { type: shell, spec: { command: x }, dependsOn: ["no"], condition: "parent['no'].exitCode == -1 && parent['no'].state == 'skipped'" }
`)
	workertest.CheckRun(t, run, "failed", map[string]string{
		"yes": "completed", "no": "skipped condition", "below": "skipped upstream", "wrong": "failed condition_error",
		"mend": "completed", "context": "completed", "far": "completed", "never": "completed",
	})
	for name, want := range map[string]string{
		"no":    "`parent.test.output.passed == 11.0` is false: parent.test.output.passed is 10",
		"wrong": "`parent.test.output.missing == 1.0` cannot be evaluated: 1:19: no such key: missing; parent.test.output is {\"passed\":10}",
	} {
		if text := run.Tasks[name].GetError(); text != want {
			t.Errorf("%s says %q, want %q", name, text, want)
		}
	}
}

// TestConditionReadsWholeStreamFromStore checks that a condition sees a whole stream although the history holds only
// its end.
func TestConditionReadsWholeStreamFromStore(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{
		"big": {{Stdout: "the beginning\n" + strings.Repeat("x", 60<<10), Output: `{"list": ["` + strings.Repeat("y", 8<<10) + `"]}`}},
	})
	c.Start("a")
	run := c.Do(`
name: big
tasks:
  big: { type: shell, spec: { command: x } }
  stream: { type: shell, spec: { command: x }, dependsOn: [big], condition: parent.big.stdout.startsWith('the beginning') }
  output: { type: shell, spec: { command: x }, dependsOn: [big], condition: "parent.big.output.list[0].size() == 8192" }
`)
	workertest.CheckRun(t, run, "completed", map[string]string{"stream": "completed", "output": "completed"})
	if r := run.Tasks["big"].GetResult(); len(r.GetStdout()) > 24<<10 || !r.GetStdoutTruncated() || len(r.GetOutput().GetFields()) != 0 {
		t.Errorf("the history holds %d bytes of stdout and %d of output", len(r.GetStdout()), len(r.GetOutput().GetFields()))
	}
}

// expensive returns a definition with many tasks in one level whose conditions exceed the cost limit. Every oneIn-th
// condition is of the kind that takes the most time.
func expensive(tasks, oneIn int) *v1.Definition {
	nested := func(variables, inner string) string {
		var b strings.Builder
		for _, v := range strings.Split(variables, "") {
			fmt.Fprintf(&b, "[1,2,3,4,5,6,7,8,9,10].all(%s, ", v)
		}
		return b.String() + inner + strings.Repeat(")", len(variables))
	}
	slow := nested("abcdefg", "a + b + c + d + e + f + g > 0")
	fast := nested("abcd", "!parent.root.stdout.contains('z')")
	def := &v1.Definition{Name: "expensive", Tasks: map[string]*v1.TaskDefinition{"root": workertest.ShellTask()}}
	for i := range tasks {
		task := workertest.ShellTask("root")
		task.Condition = fast
		if i%oneIn == 0 {
			task.Condition = slow
		}
		def.Tasks[fmt.Sprintf("t%d", i)] = task
	}
	return def
}

func TestLongThousandExpensiveConditionsAreEvaluated(t *testing.T) {
	testneeds.Long(t)
	t.Parallel()
	const tasks = 1000
	c := workertest.Shared(t).Nodes(t, workertest.Script{"root": {{Stdout: strings.Repeat("x", 60<<10)}}})
	c.Start("a")
	h := c.Submit(c.InputOf(expensive(tasks, 25)))
	run := h.Wait()
	workertest.CheckRun(t, run, "failed", map[string]string{"t0": "failed condition_error", fmt.Sprintf("t%d", tasks-1): "failed condition_error"})
	// On a busy machine the deadline can pass before the cost limit is reached.
	if text := run.Tasks["t50"].GetError(); !strings.Contains(text, "cost") && !strings.Contains(text, "deadline") {
		t.Errorf("reason: %q", text)
	}
}

func TestCancelEndsRunAmongExpensiveConditions(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"root": {{Stdout: strings.Repeat("x", 60<<10)}}})
	c.Start("a")
	h := c.Submit(c.InputOf(expensive(1000, 1)))
	h.AwaitTask("t0", func(*v1.Task) bool {
		counts := map[string]int{}
		for _, task := range h.Status(&historyv1.StatusRequest{}).GetRun().GetTasks() {
			counts[task.GetState()]++
		}
		return counts["failed"] > 0
	})
	asked := time.Now()
	h.Cancel(nil)
	run := h.Wait()
	workertest.CheckRun(t, run, "cancelled", map[string]string{"root": "completed"})
	if took := time.Since(asked); took > workertest.Soon {
		t.Errorf("the cancel took %v", took)
	}
}
