package run_test

import (
	"fmt"
	"testing"

	"switchyard/activities/executor/fake"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"

	"google.golang.org/protobuf/proto"
)

// TestHistoriesReplay checks that fresh histories replay. The recorded histories come from this test.
func TestHistoriesReplay(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		document string
		script   workertest.Script
		late     bool
		cancel   bool
	}{
		"simple": {document: `{name: simple, tasks: {only: {type: shell, spec: {command: x}}}}`},
		"diamond": {document: `{name: diamond, tasks: {top: {type: shell, spec: {command: x}},
			left: {type: shell, spec: {command: x}, dependsOn: [top]}, right: {type: shell, spec: {command: x}, dependsOn: [top]},
			bottom: {type: shell, spec: {command: x}, dependsOn: [left, right]}}}`},
		"retry": {document: `{name: retry, tasks: {flaky: {type: shell, spec: {command: x}, retry: {backoffMs: 5}},
			dead: {type: shell, spec: {command: x}, retry: {maxRetries: 1, backoffMs: 5}}, below: {type: shell, spec: {command: x}, dependsOn: [dead]}}}`,
			script: workertest.Script{"flaky": {fake.Exit(1), {}}, "dead": {fake.Exit(1)}}},
		"conditions": {document: `{name: conditions, context: {go: true}, tasks: {test: {type: shell, spec: {command: x}},
			yes: {type: shell, spec: {command: x}, dependsOn: [test], condition: "parent.test.exitCode == 0 && workflow.context.go"},
			no: {type: shell, spec: {command: x}, dependsOn: [test], condition: parent.test.exitCode == 1},
			wrong: {type: shell, spec: {command: x}, dependsOn: [test], condition: parent.test.output.none == 1.0}}}`,
			script: workertest.Script{"test": {{ContextUpdate: `{"more": 1}`, Output: `{"n": 1}`}}}},
		"cancelled": {document: `{name: cancelled, tasks: {a: {type: shell, spec: {command: x}}, b: {type: shell, spec: {command: x}, dependsOn: [a]}}}`,
			script: workertest.Script{"a": {{Block: true}}}, cancel: true},
		"waiting": {document: `{name: waiting, tasks: {a: {type: shell, spec: {command: x}}, b: {type: shell, spec: {command: x}, dependsOn: [a]}}}`, late: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := workertest.Shared(t).Nodes(t, test.script)
			if !test.late {
				c.Start("n")
				c.Do(`{name: warm, tasks: {x: {type: shell, spec: {command: x}}}}`)
			}
			h := c.Submit(c.Input(test.document))
			if test.late {
				h.AwaitTask("a", func(task *v1.Task) bool { return task.GetError() != "" })
				c.Start("n")
			}
			if test.cancel {
				c.AwaitRunning("a")
				h.Cancel(nil)
			}
			h.Wait()
			workertest.Replay(t, name, limits.Run{}, h.History(""))
		})
	}
}

func TestHistoriesOfManyExecutionsReplay(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, quietLimits)
	c := y.Nodes(t, workertest.Script{"t03": {fake.Exit(1), {}}, "t05": {{ContextUpdate: "n=5", Output: "big=1"}}})
	c.Start("n", func(cfg *workers.NodeConfig) { cfg.MaxParallel = 1 })
	def := chainBeside(16, map[string]*v1.TaskDefinition{})
	for _, task := range def.GetTasks() {
		task.Retry = &v1.RetryPolicy{BackoffMs: proto.Int32(1)}
	}
	h := c.Submit(c.InputOf(def))
	workertest.CheckRun(t, h.Wait(), "completed", nil)
	executions := executionsOf(h)
	for i, id := range executions {
		workertest.Replay(t, fmt.Sprintf("continued-%d", len(executions)-i), quietLimits, h.History(id))
	}
}
