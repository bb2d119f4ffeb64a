package workers

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/executor/fake"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/node"
)

func labels(more ...string) func(*NodeConfig) {
	return func(cfg *NodeConfig) { cfg.Labels = append(cfg.Labels, more...) }
}

func TestConstraints(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	for _, short := range []string{"a", "b", "c"} {
		c.start(short, labels("is-"+short))
	}
	run := c.do(`{name: constraints, tasks: {
		label: {type: shell, spec: {command: x}, constraints: {nodeLabels: [is-b]}},
		target: {type: shell, spec: {command: x}, constraints: {targetNode: ` + c.name("c") + `}},
		forbidden: {type: shell, spec: {command: x}, constraints: {forbiddenNodes: [` + c.name("b") + `, ` + c.name("c") + `]}},
		memory: {type: shell, spec: {command: x}, constraints: {minMemoryMb: 1, targetNode: ` + c.name("a") + `}}}}`)
	want(t, run, "completed", nil)
	for task, node := range map[string]string{"label": "b", "target": "c", "forbidden": "a", "memory": "a"} {
		if got := run.Tasks[task].GetNode(); got != c.name(node) {
			t.Errorf("task %s ran on %s, want %s", task, got, c.name(node))
		}
	}
}

// TestMaxParallel checks that a node never runs more than max-parallel attempts at once, and that all nodes are used.
func TestMaxParallel(t *testing.T) {
	t.Parallel()
	block := []fake.Step{{Block: true}}
	c := shared(t).workers(t, script{"a": block, "b": block, "c": block, "d": block, "e": block, "f": block, "g": block})
	two := func(cfg *NodeConfig) { cfg.MaxParallel = 2 }
	for _, short := range []string{"n1", "n2", "n3"} {
		c.start(short, two)
	}
	in := &v1.Definition{Name: "parallel", Tasks: map[string]*v1.TaskDefinition{}}
	for _, task := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		in.Tasks[task] = shellTask()
	}
	h := c.submit(c.inputOf(in))
	eventually(t, "six tasks run", func() bool { return len(c.fake.Calls()) == 6 })
	var status *v1.StatusResponse
	eventually(t, "the seventh waits", func() bool {
		status = h.status(&v1.StatusRequest{})
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
		if perNode[c.name(short)] != 2 {
			t.Errorf("tasks by node: %v, want 2 on each of 3", perNode)
		}
	}
	if n := len(c.fake.Calls()); n != 6 {
		t.Errorf("%d attempts run, want 6", n)
	}
	for _, task := range []string{"a", "b", "c", "d", "e", "f", "g"} {
		c.fake.Release(task)
	}
	want(t, h.wait(), "completed", nil)
}

func TestImpossibleRequestSaysSo(t *testing.T) {
	t.Parallel()
	c := own(t, ControlConfig{}).workers(t, nil) // the shared cluster is always expecting nodes of other tests
	c.start("a")
	c.do(`{name: warm, tasks: {x: {type: shell, spec: {command: x}}}}`)
	const document = `{name: impossible, tasks: {x: {type: shell, spec: {command: x}, constraints: {nodeLabels: [no-such-label]}}}}`
	began := time.Now()
	h := c.submit(c.input(document))
	task := h.until("x", func(x *v1.Task) bool { return x.GetError() != "" })
	if took := time.Since(began); took > soon || task.GetState() != "queued" || !strings.Contains(task.GetError(), "no-such-label") {
		t.Errorf("after %v: %v", took, task)
	}
	in := c.input(document)
	in.Options = &v1.RunOptions{PlacementTimeout: durationpb.New(200 * time.Millisecond)}
	run := c.submit(in).wait()
	want(t, run, "failed", map[string]string{"x": "failed placement_timeout"})
	if task := run.Tasks["x"]; !strings.Contains(task.GetError(), "no-such-label") || task.GetResult().GetExitCode() != -1 {
		t.Errorf("%v", task)
	}
}

func TestTaskWaitsForANodeThatComesLater(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	h := c.submit(c.input(`{name: later, tasks: {x: {type: shell, spec: {command: x}}}}`))
	h.until("x", func(x *v1.Task) bool { return x.GetError() != "" })
	c.start("late")
	run := h.wait()
	want(t, run, "completed", nil)
	if x := run.Tasks["x"]; x.GetNode() != c.name("late") || x.GetAttempt() != 0 {
		t.Errorf("%v", x)
	}
}

// TestTerminatedRunFreesItsPlaces checks that the places of a terminated run are freed although the run cannot report
// its end.
func TestTerminatedRunFreesItsPlaces(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{sweepInterval: 50 * time.Millisecond})
	c := y.workers(t, script{"hold": {{Block: true}}})
	c.start("a", func(cfg *NodeConfig) {
		cfg.MaxParallel = 1
		cfg.Machine = node.NewMachine(node.Size{Cores: 4, MemoryMB: 1 << 20})
	})
	first := c.submit(c.input(`{name: first, tasks: {hold: {type: shell, spec: {command: x}}}}`))
	c.running("hold")
	second := c.submit(c.input(`{name: second, tasks: {x: {type: shell, spec: {command: x}}}}`))
	second.until("x", func(x *v1.Task) bool { return x.GetError() != "" })
	if err := c.conn.TerminateWorkflow(t.Context(), first.id, "", "a test"); err != nil {
		t.Fatal(err)
	}
	want(t, second.wait(), "completed", nil)
}

// TestNodeStopMovesItsTask checks that a stopping node hands its task back without spending an attempt.
func TestNodeStopMovesItsTask(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"x": {{Block: true}, {}}})
	first := c.start("first")
	h := c.submit(c.input(`{name: move, tasks: {x: {type: shell, spec: {command: x}, retry: {maxRetries: 0}}}}`))
	c.running("x")
	c.start("second")
	eventually(t, "the second node is known", func() bool { return c.control.knows(c.name("second")) })
	first.Stop()
	run := h.wait()
	want(t, run, "completed", nil)
	if x := run.Tasks["x"]; x.GetNode() != c.name("second") || x.GetAttempt() != 0 || c.calls()["x"] != 2 {
		t.Errorf("after %d executions: %v", c.calls()["x"], x)
	}
}

func TestNodeLeavesAndComesBack(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	c.start("a").Stop()
	eventually(t, "the node has left the fleet", func() bool { return !c.control.knows(c.name("a")) })
	c.start("a")
	want(t, c.do(`{name: back, tasks: {x: {type: shell, spec: {command: x}}}}`), "completed", nil)
}
