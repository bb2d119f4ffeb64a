package run_test

import (
	"fmt"
	"strings"
	"testing"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
)

// TestKeptNodeTakesTasksThatAskForItOrTolerateIt checks that other tasks wait, with the reason, until another node comes.
func TestKeptNodeTakesTasksThatAskForItOrTolerateIt(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{})
	kept := c.Label + "-kept"
	c.Start("a", func(cfg *workers.NodeConfig) { cfg.Terms = &v1.NodeTerms{KeptFor: []string{"label=" + kept}} })
	h := c.Submit(c.Input(fmt.Sprintf(`{name: kept, tasks: {
		asks: {type: shell, spec: {command: x}, constraints: {nodeLabels: [%[1]s]}},
		tolerates: {type: shell, spec: {command: x}, constraints: {tolerates: [%[1]s]}},
		other: {type: shell, spec: {command: x}}}}`, kept)))
	for _, name := range []string{"asks", "tolerates"} {
		h.AwaitTask(name, func(task *v1.Task) bool { return task.GetState() == v1.TaskCompleted })
	}
	h.AwaitTask("other", func(task *v1.Task) bool {
		return strings.Contains(task.GetError(), c.Name("a")+" is kept for tasks that ask for label "+kept+" or tolerate "+kept)
	})
	c.Start("b")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"asks": "completed", "tolerates": "completed", "other": "completed"})
	if node := run.GetTasks()["other"].GetNode(); node != c.Name("b") {
		t.Errorf("other ran on %s", node)
	}
	workertest.Replay(t, "kept-node", limits.Run{}, h.History(""))
}
