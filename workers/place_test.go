package workers_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/executor/fake"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers"
	"switchyard/workers/node"
	"switchyard/workers/workertest"
)

func TestConstraints(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	for _, short := range []string{"a", "b", "c"} {
		c.Start(short, workertest.WithLabels("is-"+short))
	}
	run := c.Do(`{name: constraints, tasks: {
		label: {type: shell, spec: {command: x}, constraints: {nodeLabels: [is-b]}},
		target: {type: shell, spec: {command: x}, constraints: {targetNode: ` + c.Name("c") + `}},
		forbidden: {type: shell, spec: {command: x}, constraints: {forbiddenNodes: [` + c.Name("b") + `, ` + c.Name("c") + `]}},
		memory: {type: shell, spec: {command: x}, constraints: {minMemoryMb: 1, targetNode: ` + c.Name("a") + `}}}}`)
	workertest.CheckRun(t, run, "completed", nil)
	for task, node := range map[string]string{"label": "b", "target": "c", "forbidden": "a", "memory": "a"} {
		if got := run.Tasks[task].GetNode(); got != c.Name(node) {
			t.Errorf("task %s ran on %s, want %s", task, got, c.Name(node))
		}
	}
}

// TestMaxParallel checks that a node never runs more than max-parallel attempts at once, and that all nodes are used.
func TestMaxParallel(t *testing.T) {
	t.Parallel()
	block := []fake.Step{{Block: true}}
	c := workertest.Shared(t).Nodes(t, workertest.Script{"a": block, "b": block, "c": block, "d": block, "e": block, "f": block, "g": block})
	two := func(cfg *workers.NodeConfig) { cfg.MaxParallel = 2 }
	for _, short := range []string{"n1", "n2", "n3"} {
		c.Start(short, two)
	}
	in := &v1.Definition{Name: "parallel", Tasks: map[string]*v1.TaskDefinition{}}
	for _, task := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		in.Tasks[task] = workertest.ShellTask()
	}
	h := c.Submit(c.InputOf(in))
	workertest.Eventually(t, "six tasks run", func() bool { return len(c.Fake.Calls()) == 6 })
	var status *historyv1.StatusResponse
	workertest.Eventually(t, "the seventh waits", func() bool {
		status = h.Status(&historyv1.StatusRequest{})
		for _, task := range status.GetRun().GetTasks() {
			if task.GetState() == "queued" && strings.Contains(task.GetError(), "nodes") {
				return true
			}
		}
		return false
	})
	perNode := map[string]int{}
	for _, task := range status.GetRun().GetTasks() {
		if task.GetState() != "queued" {
			perNode[task.GetNode()]++
		}
	}
	for _, short := range []string{"n1", "n2", "n3"} {
		if perNode[c.Name(short)] != 2 {
			t.Errorf("tasks by node: %v, want 2 on each of 3", perNode)
		}
	}
	if n := len(c.Fake.Calls()); n != 6 {
		t.Errorf("%d attempts run, want 6", n)
	}
	for _, task := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		c.Fake.Release(task)
	}
	workertest.CheckRun(t, h.Wait(), "completed", nil)
}

func TestImpossibleRequestSaysSo(t *testing.T) {
	t.Parallel()
	c := workertest.Own(t, workers.ControlConfig{}).Nodes(t, nil) // the shared cluster is always expecting nodes of other tests
	c.Start("a")
	c.Do(`{name: warm, tasks: {x: {type: shell, spec: {command: x}}}}`)
	const document = `{name: impossible, tasks: {x: {type: shell, spec: {command: x}, constraints: {nodeLabels: [no-such-label]}}}}`
	began := time.Now()
	h := c.Submit(c.Input(document))
	task := h.AwaitTask("x", func(x *v1.Task) bool { return x.GetError() != "" })
	if took := time.Since(began); took > workertest.Soon || task.GetState() != "queued" || !strings.Contains(task.GetError(), "no-such-label") {
		t.Errorf("after %v: %v", took, task)
	}
	in := c.Input(document)
	in.Options = &v1.RunOptions{PlacementTimeout: durationpb.New(200 * time.Millisecond)}
	run := c.Submit(in).Wait()
	workertest.CheckRun(t, run, "failed", map[string]string{"x": "failed placement_timeout"})
	if task := run.Tasks["x"]; !strings.Contains(task.GetError(), "no-such-label") || task.GetResult().GetExitCode() != -1 {
		t.Errorf("%v", task)
	}
}

func TestTaskWaitsForANodeThatComesLater(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	h := c.Submit(c.Input(`{name: later, tasks: {x: {type: shell, spec: {command: x}}}}`))
	h.AwaitTask("x", func(x *v1.Task) bool { return x.GetError() != "" })
	c.Start("late")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", nil)
	if x := run.Tasks["x"]; x.GetNode() != c.Name("late") || x.GetAttempt() != 0 {
		t.Errorf("%v", x)
	}
}

// TestTerminatedRunFreesItsPlaces checks that the places of a terminated run are freed although the run cannot report
// its end.
func TestTerminatedRunFreesItsPlaces(t *testing.T) {
	t.Parallel()
	y := workertest.Own(t, workers.ControlConfig{}.WithSweepInterval(50*time.Millisecond))
	c := y.Nodes(t, workertest.Script{"hold": {{Block: true}}})
	c.Start("a", func(cfg *workers.NodeConfig) {
		cfg.MaxParallel = 1
		cfg.Machine = node.NewMachine(node.Size{Cores: 4, MemoryMB: 1 << 20})
	})
	first := c.Submit(c.Input(`{name: first, tasks: {hold: {type: shell, spec: {command: x}}}}`))
	c.AwaitRunning("hold")
	second := c.Submit(c.Input(`{name: second, tasks: {x: {type: shell, spec: {command: x}}}}`))
	second.AwaitTask("x", func(x *v1.Task) bool { return x.GetError() != "" })
	if err := c.Conn.TerminateWorkflow(t.Context(), first.ID, "", "a test"); err != nil {
		t.Fatal(err)
	}
	workertest.CheckRun(t, second.Wait(), "completed", nil)
}

// TestNodeStopMovesItsTask checks that a stopping node hands its task back without spending an attempt.
func TestNodeStopMovesItsTask(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"x": {{Block: true}, {}}})
	first := c.Start("first")
	h := c.Submit(c.Input(`{name: move, tasks: {x: {type: shell, spec: {command: x}, retry: {maxRetries: 0}}}}`))
	c.AwaitRunning("x")
	c.Start("second")
	workertest.Eventually(t, "the second node is known", func() bool { return c.Control.Knows(c.Name("second")) })
	first.Stop()
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", nil)
	if x := run.Tasks["x"]; x.GetNode() != c.Name("second") || x.GetAttempt() != 0 || c.Calls()["x"] != 2 {
		t.Errorf("after %d executions: %v", c.Calls()["x"], x)
	}
}

func TestNodeLeavesAndComesBack(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("a").Stop()
	workertest.Eventually(t, "the node has left the fleet", func() bool { return !c.Control.Knows(c.Name("a")) })
	c.Start("a")
	workertest.CheckRun(t, c.Do(`{name: back, tasks: {x: {type: shell, spec: {command: x}}}}`), "completed", nil)
}
