package workers

import (
	"testing"

	"switchyard/activities/executor/fake"
	v1 "switchyard/proto/switchyard/v1"
)

// TestControlRestart replaces the control worker in the middle of a run by one with an empty placement queue. Running
// tasks continue, waiting tasks get places, and nothing runs twice.
func TestControlRestart(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{})
	c := y.workers(t, script{"a": {{Block: true}}, "b": {{Block: true}}, "flaky": {fake.Exit(1), {}}})
	c.start("n", func(cfg *NodeConfig) { cfg.MaxParallel = 2 })
	h := c.submit(c.input(`{name: restart, tasks: {
		a: {type: shell, priority: 9, spec: {command: x}}, b: {type: shell, priority: 9, spec: {command: x}},
		w1: {type: shell, spec: {command: x}}, w2: {type: shell, spec: {command: x}, dependsOn: [w1]},
		flaky: {type: shell, spec: {command: x}, retry: {backoffMs: 1}},
		gpu: {type: shell, spec: {command: x}, constraints: {nodeLabels: [later]}}}}`))
	c.running("a")
	c.running("b")
	h.until("w1", func(task *v1.Task) bool { return task.GetState() == "queued" && task.GetError() != "" })
	h.until("gpu", func(task *v1.Task) bool { return task.GetError() != "" })

	y.control.Stop()
	c.fake.Release("a") // ends while no control process runs
	control, err := StartControl(t.Context(), y.config)
	if err != nil {
		t.Fatal(err)
	}
	y.control = control
	h.until("a", func(task *v1.Task) bool { return task.GetState() == "completed" })
	h.until("w2", func(task *v1.Task) bool { return task.GetState() == "completed" })
	h.until("flaky", func(task *v1.Task) bool { return task.GetState() == "completed" })
	if task := h.status(&v1.StatusRequest{}).GetRun().GetTasks()["b"]; task.GetState() != "assigned" {
		t.Errorf("b should still run: %v", task)
	}
	c.start("m", labels("later"))
	h.until("gpu", func(task *v1.Task) bool { return task.GetState() == "completed" })
	c.fake.Release("b")
	run := h.wait()
	want(t, run, "completed", nil)
	for task, n := range c.calls() {
		if want := map[bool]int{true: 2, false: 1}[task == "flaky"]; n != want {
			t.Errorf("task %s ran %d times, want %d", task, n, want)
		}
	}
	if b := run.Tasks["b"]; b.GetAttempt() != 0 || b.GetNode() != c.name("n") {
		t.Errorf("b: %v", b)
	}
}
