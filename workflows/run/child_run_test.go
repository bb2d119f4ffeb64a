package run_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/executor/fake"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/definition"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// childDefinition returns a workflow of one task that the nodes of the test accept.
func childDefinition(c *workertest.Nodes, name, task, more string) string {
	return fmt.Sprintf(`{name: %s, %s tasks: {%s: {type: shell, spec: {command: x}, retry: {maxRetries: 0},
		resources: {cores: 0}, constraints: {nodeLabels: [%s]}}}}`, name, more, task, c.Label)
}

// storeChildWorkflow stores the workflow of childDefinition under a name that is unique to this test.
func storeChildWorkflow(c *workertest.Nodes, task, more string) (name string) {
	c.T.Helper()
	name = names.NewRunID("stored")
	def, err := definition.Parse("stored.yaml", []byte(childDefinition(c, name, task, more)))
	if err != nil {
		c.T.Fatal(err)
	}
	storeWorkflow(c, def)
	return name
}

// childRun returns the run that a task has started.
func childRun(c *workertest.Nodes, task interface{ GetChildRun() string }) *workertest.Handle {
	id := task.GetChildRun()
	return &workertest.Handle{Nodes: c, ID: id, Workflow: c.Conn.GetWorkflow(c.T.Context(), id, "")}
}

// TestChildRunHasItsOwnInputAndOutput checks that a task of type run starts another run with its own input, whose final
// context is the task's output.
func TestChildRunHasItsOwnInputAndOutput(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("b", 30_000)
	c := workertest.Shared(t).Nodes(t, workertest.Script{
		"make":  {{Output: "tag=v7"}},
		"build": {{ContextUpdate: `{"digest": "abc"}`}},
		"large": {{ContextUpdate: fmt.Sprintf(`{"text": %q}`, big)}},
	})
	c.Start("n")
	in := c.Input(fmt.Sprintf(`{name: parent, tasks: {
		make: {type: shell, spec: {command: x}},
		child: {type: run, dependsOn: [make], spec: {input: {tag: "${{ parent.make.output.tag }}", n: 3}, definition: %s}},
		named: {type: run, spec: {workflow: "%s"}},
		after: {type: shell, spec: {command: x}, dependsOn: [child, named],
			condition: "parent.child.output.digest == 'abc' && parent.child.exitCode == 0 && size(parent.named.output.text) == 30000"}}}`,
		childDefinition(c, "inner", "build", `context: {base: "1"}, inputs: {tag: {type: string, required: true}, n: {type: integer}, kind: {default: plain}},`), storeChildWorkflow(c, "large", "")))
	in.By, in.Batch = "ann", "night-7"
	h := c.Submit(in)
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"child": "completed", "named": "completed", "after": "completed"})
	task := run.Tasks["child"]
	if got := fmt.Sprint(task.GetResult().GetOutput().AsMap()); got != "map[base:1 digest:abc]" {
		t.Errorf("output of the child: %s", got)
	}
	if run.Tasks["named"].GetResult().GetOutput() != nil && h.Records["named"] == "" {
		t.Errorf("30 KB of output travel: %v", run.Tasks["named"])
	}
	for _, e := range h.History("") {
		// Small end events leave room in the parent's history for many children.
		if end := e.GetChildWorkflowExecutionCompletedEventAttributes(); end != nil && proto.Size(end) > 1<<10 {
			t.Errorf("the end of a child takes %d bytes", proto.Size(end))
		}
	}
	child := childRun(c, task)
	inner := child.Wait()
	if got := fmt.Sprint(inner.GetInput().AsMap()); got != "map[kind:plain n:3 tag:v7]" {
		t.Errorf("input of the child: %s", got)
	}
	if got := searchAttributes(child); got.Workflow != "inner" || got.Parent != h.ID || got.Trigger != v1.TriggerChild || got.State != "completed" ||
		got.Owner != "ann" || got.Batch != "night-7" {
		t.Errorf("search attributes of the child: %+v", got)
	}
	workertest.Replay(t, "child", limits.Run{}, h.History(""))
}

// TestOpenChildDoesNotDelayContinueAsNew checks that a long child run runs once while its parent continues as new
// several times.
func TestOpenChildDoesNotDelayContinueAsNew(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, detachLimits())
	c := y.Nodes(t, workertest.Script{"slow": {{Block: true, ContextUpdate: `{"n": 7}`}}})
	c.Start("n")
	h := c.Submit(c.InputOf(chainBesideChild(c, "slow")))
	h.AwaitTask("t24", func(x *v1.Task) bool { return x.GetState() == "completed" })
	task := h.AwaitTask("child", func(x *v1.Task) bool { return x.GetState() == "running" })
	if n := len(executionsOf(h)); n < 3 || task.GetChildRun() == "" {
		t.Errorf("%d executions: %v", n, task)
	}
	c.Fake.Release("slow")
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"child": "completed", "after": "completed"})
	if n := c.Calls()["slow"]; n != 1 || run.GetTasks()["child"].GetResult().GetOutput().GetFields()["n"].GetNumberValue() != 7 {
		t.Errorf("it ran %d times and left %v", n, run.GetTasks()["child"])
	}
	executions := executionsOf(h)
	for name, i := range map[string]int{"first": 0, "last": len(executions) - 1} {
		workertest.Replay(t, "continued-child-"+name, detachLimits(), h.History(executions[i]))
	}
}

// TestFailedChildRunFailsItsTask checks that a child that does not complete is a failed attempt, and that a run that would fail
// again is repeated at no level.
func TestFailedChildRunFailsItsTask(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"bad": {fake.Exit(3)}})
	c.Start("n")
	in := c.Input(fmt.Sprintf(`{name: parent, tasks: {
		bad: {type: run, spec: {definition: %[1]s}, retry: {maxRetries: 1, backoffMs: 1}},
		deep: {type: run, spec: {definition: {name: mid, tasks: {down: {type: run, spec: {definition: %[1]s}}}}}}}}`, childDefinition(c, "inner", "bad", "")))
	in.Depth = 9
	run := c.Submit(in).Wait()
	workertest.CheckRun(t, run, "failed", map[string]string{"bad": "dead_letter child_run", "deep": "failed child_run"})
	bad, deep := run.Tasks["bad"], run.Tasks["deep"]
	if !strings.Contains(bad.GetError(), `failed: task "bad" failed: exit code 3`) || bad.GetResult().GetExitCode() != 1 || c.Calls()["bad"] != 2 {
		t.Errorf("bad: %v; calls %v", bad, c.Calls())
	}
	down := childRun(c, deep).Wait().GetTasks()["down"]
	if !strings.Contains(deep.GetError(), "runs are nested more than 10 deep") || len(deep.GetAttempts()) != 1 || len(down.GetAttempts()) != 1 {
		t.Errorf("deep: %v; the task below: %v", deep, down)
	}
}

// TestNextExecutionLearnsOfTheEndOfChild checks that a later execution of the parent learns of the child's end, and that the child
// learns of the end of that execution.
func TestNextExecutionLearnsOfTheEndOfChild(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, detachLimits())
	for name, test := range map[string]struct {
		end         func(run, child *workertest.Handle)
		task, child string // their states; "" if they do not end by themselves
	}{
		"cancelled with its parent": {func(run, _ *workertest.Handle) { run.Cancel(nil) }, "cancelled", "cancelled"},
		"terminated":                {func(_, child *workertest.Handle) { terminate(child) }, "failed child_run", ""},
		"its parent terminated":     {func(run, _ *workertest.Handle) { terminate(run) }, "", "cancelled"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := y.Nodes(t, workertest.Script{"slow": {{Block: true}}})
			c.Start("n")
			h := c.Submit(c.InputOf(chainBesideChild(c, "slow")))
			h.AwaitTask("t24", func(x *v1.Task) bool { return x.GetState() == "completed" })
			task := h.AwaitTask("child", func(x *v1.Task) bool { return x.GetState() == "running" })
			child := childRun(c, task)
			c.AwaitRunning("slow")
			test.end(h, child)
			if test.task != "" {
				x := h.Wait().GetTasks()["child"]
				if got := x.GetState() + " " + x.GetReason(); !strings.HasPrefix(got, test.task) || !x.GetStartedAt().AsTime().Equal(task.GetStartedAt().AsTime()) {
					t.Errorf("the task was %v, and is %v", task, x)
				}
			}
			if test.child != "" && child.Wait().GetState() != test.child {
				t.Errorf("the child is not %s", test.child)
			}
			if test.task == "" {
				workertest.Replay(t, "continued-child-orphan", detachLimits(), child.History(""))
			}
		})
	}
}

// chainBesideChild returns a long chain of short tasks beside a child run of one task.
func chainBesideChild(c *workertest.Nodes, task string) *v1.Definition {
	c.T.Helper()
	def, err := definition.Parse("parent.yaml", []byte(fmt.Sprintf(`{name: parent, tasks: {
		child: {type: run, retry: {maxRetries: 0}, spec: {definition: %s}},
		after: {type: shell, spec: {command: x}, dependsOn: [child], resources: {cores: 0}}}}`,
		childDefinition(c, "inner", task, "failurePolicy: continue,"))))
	if err != nil {
		c.T.Fatal(err)
	}
	for name, task := range chainBeside(25, map[string]*v1.TaskDefinition{}).GetTasks() {
		def.Tasks[name] = task
	}
	return def
}
