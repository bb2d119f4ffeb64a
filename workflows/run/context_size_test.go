package run_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"switchyard/activities/executor/fake"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
)

func TestContextUpdatesMerge(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{
		"one": {{ContextUpdate: `{"a": 1, "b": {"x": 1}}`}},
		"two": {{ContextUpdate: "b=new\nc=3\n"}},
		"bad": {{ContextUpdate: `{"d": 4}`, Result: workertest.OutOfMemory()}},
	})
	c.Start("a")
	run := c.Do(`{name: context, context: {a: 0, kept: true}, tasks: {
		one: {type: shell, spec: {command: x}}, two: {type: shell, spec: {command: x}, dependsOn: [one]},
		bad: {type: shell, spec: {command: x}, retry: {maxRetries: 0}},
		after: {type: shell, spec: {command: x}, dependsOn: [two], condition: workflow.context.b == 'new'}}}`)
	workertest.CheckRun(t, run, "failed", map[string]string{"after": "completed"})
	got, err := json.Marshal(run.GetContext().AsMap())
	if err != nil {
		t.Fatal(err)
	}
	// A failed task adds nothing.
	if want := `{"a":1,"b":"new","c":"3","kept":true}`; string(got) != want {
		t.Errorf("context %s, want %s", got, want)
	}
}

// TestTaskThatExceedsContextLimitFails checks that a task that would exceed the limit of the run's context fails.
func TestTaskThatExceedsContextLimitFails(t *testing.T) {
	t.Parallel()
	s := workertest.Script{"file": {{ContextUpdate: `{"x": "` + strings.Repeat("x", 33<<10) + `"}`}}}
	def := &v1.Definition{Name: "context", Tasks: map[string]*v1.TaskDefinition{"file": workertest.ShellTask()}}
	retries := int32(0)
	def.Tasks["file"].Retry = &v1.RetryPolicy{MaxRetries: &retries}
	last := ""
	for i := range 9 {
		name := fmt.Sprintf("t%d", i)
		s[name] = append(s[name], fake.Step{ContextUpdate: fmt.Sprintf(`{"k%d": "%s"}`, i, strings.Repeat("x", 30<<10))})
		def.Tasks[name] = workertest.ShellTask()
		if last != "" {
			def.Tasks[name].DependsOn = []string{last}
		}
		last = name
	}
	c := workertest.Shared(t).Nodes(t, s)
	c.Start("a")
	run := c.Submit(c.InputOf(def)).Wait()
	workertest.CheckRun(t, run, "failed", map[string]string{"t7": "completed", "t8": "failed context", "file": "failed output"})
	if n := len(run.GetContext().GetFields()); n != 8 {
		t.Errorf("the context has %d keys, want those of the 8 tasks that completed", n)
	}
}

func TestLargeContextReachesTasksThroughStore(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{
		"a": {{ContextUpdate: "big=" + strings.Repeat("x", 8<<10)}},
		"b": {{ContextUpdate: "big=" + strings.Repeat("y", 8<<10)}},
	})
	c.Start("n")
	h := c.Submit(c.Input(`{name: context, context: {first: 1}, tasks: {
		a: {type: shell, spec: {command: x}}, b: {type: shell, spec: {command: x}, dependsOn: [a]},
		c: {type: shell, spec: {command: x}, dependsOn: [b], env: {BIG: "${{ workflow.context.big.substring(0, 3) }}"},
			condition: "workflow.context.big.startsWith('y') && workflow.context.first == 1"}}}`))
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"c": "completed"})
	if got := strings.Join(valuesSeen(c, "c", "BIG"), ""); got != "yyy" {
		t.Errorf("BIG is %q", got)
	}
	workertest.Replay(t, "context", limits.Run{}, h.History(""))
}
