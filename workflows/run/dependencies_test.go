package run_test

import (
	"strings"
	"testing"

	"switchyard/workers/workertest"
)

func TestTasksRunAfterTheirParents(t *testing.T) {
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
			c := workertest.Shared(t).Nodes(t, nil)
			c.Start("a")
			run := c.Do(test.document)
			workertest.CheckRun(t, run, "completed", nil)
			started := map[string]int{}
			for i, call := range c.Fake.Calls() {
				started[call.Task] = i + 1
			}
			if len(started) != len(run.GetTasks()) || len(c.Fake.Calls()) != len(run.GetTasks()) {
				t.Errorf("%d tasks, of which these ran: %v", len(run.GetTasks()), started)
			}
			for name, task := range run.GetTasks() {
				if task.GetState() != "completed" || task.GetNode() != c.Name("a") || task.GetStartedAt() == nil || task.GetCompletedAt() == nil {
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
