package workers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchyard/activities/executor/fake"
	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

func TestConditions(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{
		"test": {{Stdout: "ran 10 tests\n0 failures\n", Output: `{"passed": 10}`}},
		"bad":  {fake.Exit(3)},
	})
	c.start("a")
	run := c.do(`
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
	want(t, run, "failed", map[string]string{
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

// TestConditionReadsTheStore checks that a condition sees a whole stream although the history holds only its end.
func TestConditionReadsTheStore(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{
		"big": {{Stdout: "the beginning\n" + strings.Repeat("x", 60<<10), Output: `{"list": ["` + strings.Repeat("y", 8<<10) + `"]}`}},
	})
	c.start("a")
	run := c.do(`
name: big
tasks:
  big: { type: shell, spec: { command: x } }
  stream: { type: shell, spec: { command: x }, dependsOn: [big], condition: parent.big.stdout.startsWith('the beginning') }
  output: { type: shell, spec: { command: x }, dependsOn: [big], condition: "parent.big.output.list[0].size() == 8192" }
`)
	want(t, run, "completed", map[string]string{"stream": "completed", "output": "completed"})
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
	def := &v1.Definition{Name: "expensive", Tasks: map[string]*v1.TaskDefinition{"root": shellTask()}}
	for i := range tasks {
		task := shellTask("root")
		task.Condition = fast
		if i%oneIn == 0 {
			task.Condition = slow
		}
		def.Tasks[fmt.Sprintf("t%d", i)] = task
	}
	return def
}

func TestExpensiveConditions(t *testing.T) { expensiveConditions(t, 100) }

func TestLongThousandExpensiveConditions(t *testing.T) {
	testneeds.Long(t)
	expensiveConditions(t, 1000)
}

func expensiveConditions(t *testing.T, tasks int) {
	t.Parallel()
	c := shared(t).workers(t, script{"root": {{Stdout: strings.Repeat("x", 60<<10)}}})
	c.start("a")
	h := c.submit(c.inputOf(expensive(tasks, 25)))
	run := h.wait()
	want(t, run, "failed", map[string]string{"t0": "failed condition_error", fmt.Sprintf("t%d", tasks-1): "failed condition_error"})
	// On a busy machine the deadline can pass before the cost limit is reached.
	if text := run.Tasks["t50"].GetError(); !strings.Contains(text, "cost") && !strings.Contains(text, "deadline") {
		t.Errorf("reason: %q", text)
	}
}

func TestCancelAmongExpensiveConditions(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"root": {{Stdout: strings.Repeat("x", 60<<10)}}})
	c.start("a")
	h := c.submit(c.inputOf(expensive(1000, 1)))
	h.until("t0", func(*v1.Task) bool {
		counts := map[string]int{}
		for _, task := range h.status(&v1.StatusRequest{}).GetRun().GetTasks() {
			counts[task.GetState()]++
		}
		return counts["failed"] > 0
	})
	asked := time.Now()
	h.signal(nil)
	run := h.wait()
	want(t, run, "cancelled", map[string]string{"root": "completed"})
	if took := time.Since(asked); took > soon {
		t.Errorf("the cancel took %v", took)
	}
}
