package run_test

import (
	"strings"
	"testing"

	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
)

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
