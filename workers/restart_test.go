package workers_test

import (
	"testing"

	"switchyard/activities/executor/fake"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/workertest"
)

// TestControlRestart replaces the control worker in the middle of a run by one with an empty placement queue. Running
// tasks continue, waiting tasks get places, and nothing runs twice.
func TestControlRestart(t *testing.T) {
	t.Parallel()
	y := workertest.Own(t, workers.ControlConfig{})
	c := y.Nodes(t, workertest.Script{"a": {{Block: true}}, "b": {{Block: true}}, "flaky": {fake.Exit(1), {}}})
	c.Start("n", func(cfg *workers.NodeConfig) { cfg.MaxParallel = 2 })
	h := c.Submit(c.Input(`{name: restart, tasks: {
		a: {type: shell, priority: 9, spec: {command: x}}, b: {type: shell, priority: 9, spec: {command: x}},
		w1: {type: shell, spec: {command: x}}, w2: {type: shell, spec: {command: x}, dependsOn: [w1]},
		flaky: {type: shell, spec: {command: x}, retry: {backoffMs: 1}},
		gpu: {type: shell, spec: {command: x}, constraints: {nodeLabels: [later]}}}}`))
	c.AwaitRunning("a")
	c.AwaitRunning("b")
	h.AwaitTask("w1", func(task *v1.Task) bool { return task.GetState() == "queued" && task.GetError() != "" })
	h.AwaitTask("gpu", func(task *v1.Task) bool { return task.GetError() != "" })

	y.Control.Stop()
	c.Fake.Release("a") // ends while no control process runs
	control, err := workers.StartControl(t.Context(), y.Config)
	if err != nil {
		t.Fatal(err)
	}
	y.Control = control
	h.AwaitTask("a", func(task *v1.Task) bool { return task.GetState() == "completed" })
	h.AwaitTask("w2", func(task *v1.Task) bool { return task.GetState() == "completed" })
	h.AwaitTask("flaky", func(task *v1.Task) bool { return task.GetState() == "completed" })
	if task := h.Status(&historyv1.StatusRequest{}).GetRun().GetTasks()["b"]; task.GetState() != "assigned" {
		t.Errorf("b should still run: %v", task)
	}
	c.Start("m", workertest.WithLabels("later"))
	h.AwaitTask("gpu", func(task *v1.Task) bool { return task.GetState() == "completed" })
	c.Fake.Release("b")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", nil)
	for task, n := range c.Calls() {
		if want := map[bool]int{true: 2, false: 1}[task == "flaky"]; n != want {
			t.Errorf("task %s ran %d times, want %d", task, n, want)
		}
	}
	if b := run.Tasks["b"]; b.GetAttempt() != 0 || b.GetNode() != c.Name("n") {
		t.Errorf("b: %v", b)
	}
}
