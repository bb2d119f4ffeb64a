package run_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/activities/library"
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
	if _, err := library.New(c.Conn, c.Conn.Namespace).Put(c.T.Context(), def, library.PutOptions{}); err != nil {
		c.T.Fatal(err)
	}
	return name
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
	h := c.Submit(c.Input(fmt.Sprintf(`{name: parent, tasks: {
		make: {type: shell, spec: {command: x}},
		child: {type: run, dependsOn: [make], spec: {input: {tag: "${{ parent.make.output.tag }}", n: 3}, definition: %s}},
		named: {type: run, spec: {workflow: "%s"}},
		after: {type: shell, spec: {command: x}, dependsOn: [child, named],
			condition: "parent.child.output.digest == 'abc' && parent.child.exitCode == 0 && size(parent.named.output.text) == 30000"}}}`,
		childDefinition(c, "inner", "build", `context: {base: "1"}, inputs: {tag: {type: string, required: true}, n: {type: integer}, kind: {default: plain}},`), storeChildWorkflow(c, "large", ""))))
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
	child := &workertest.Handle{Nodes: c, ID: task.GetChildRun(), Workflow: c.Conn.GetWorkflow(t.Context(), task.GetChildRun(), "")}
	inner := child.Wait()
	if got := fmt.Sprint(inner.GetInput().AsMap()); got != "map[kind:plain n:3 tag:v7]" {
		t.Errorf("input of the child: %s", got)
	}
	if got := searchAttributes(child); got.Workflow != "inner" || got.Parent != h.ID || got.Trigger != v1.TriggerChild || got.State != "completed" {
		t.Errorf("search attributes of the child: %+v", got)
	}
	workertest.Replay(t, "child", limits.Run{}, h.History(""))
}

// TestFailedChildRunFailsItsTask checks that a child that does not complete is a failed attempt with the child's error.
func TestFailedChildRunFailsItsTask(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"bad": {fake.Exit(3)}, "slow": {{Block: true}}, "flaky": {fake.Exit(1), {}}})
	c.Start("n")
	h := c.Submit(c.Input(fmt.Sprintf(`{name: parent, tasks: {
		bad: {type: run, spec: {definition: %s}, retry: {maxRetries: 0}},
		flaky: {type: run, spec: {definition: %s}, retry: {maxRetries: 1, backoffMs: 1}},
		late: {type: run, spec: {definition: %s}, deadline: 15s, retry: {maxRetries: 0}},
		unknown: {type: run, spec: {workflow: there-is-none}},
		input: {type: run, spec: {workflow: %s}},
		expression: {type: run, dependsOn: [flaky], spec: {workflow: x, input: {a: "${{ parent.flaky.output.nothing }}"}}}}}`,
		childDefinition(c, "inner", "bad", ""), childDefinition(c, "inner", "flaky", ""), childDefinition(c, "inner", "slow", ""),
		storeChildWorkflow(c, "never", "inputs: {n: {type: integer, required: true}},"))))
	run := h.Wait()
	workertest.CheckRun(t, run, "failed", map[string]string{
		"bad": "failed child_run", "flaky": "completed", "late": "failed deadline", "unknown": "failed child_run",
		"input": "failed child_run", "expression": "failed expression"})
	for task, text := range map[string]string{
		"bad": `failed: task "bad" failed: exit code 3`, "late": "within its deadline of 15s", "unknown": `no definition is stored under the name "there-is-none"`,
		"input": "input n is missing",
	} {
		if got := run.Tasks[task]; !strings.Contains(got.GetError(), text) {
			t.Errorf("%s: %s", task, got.GetError())
		}
	}
	if bad := run.Tasks["bad"]; bad.GetResult().GetExitCode() != 1 || bad.GetChildRun() == "" || !strings.Contains(bad.GetError(), bad.GetChildRun()) {
		t.Errorf("bad: %v", bad)
	}
	if flaky := run.Tasks["flaky"]; flaky.GetAttempt() != 1 || c.Calls()["flaky"] != 2 || c.Calls()["never"] != 0 {
		t.Errorf("flaky: %v; calls %v", flaky, c.Calls())
	}
	late := &workertest.Handle{Nodes: c, ID: run.Tasks["late"].GetChildRun()}
	workertest.Eventually(t, "the child that took too long is cancelled", func() bool {
		return describeRun(late).GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED
	})
}

// TestFailureThatRecursIsRetriedAtNoLevel checks that a run that would fail again is not repeated by the runs above it, and that
// they fail for the same reason. What may pass the next time is repeated.
func TestFailureThatRecursIsRetriedAtNoLevel(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"flaky": {fake.Exit(1)}, "again": {fake.Exit(1), {}}})
	c.Start("n")
	task := func(more string) string {
		return fmt.Sprintf("{type: shell, spec: {command: x}, resources: {cores: 0}, constraints: {nodeLabels: [%s]}, %s}", c.Label, more)
	}
	const unknown = `env: {X: "${{ workflow.input.nothing }}"}`
	leaves := map[string]struct{ leaf, state string }{
		"expression": {"t: " + task(unknown), "failed expression"},
		"condition":  {"t: " + task(`condition: "workflow.input.nothing == 1"`), "failed condition_error"},
		"fan_out":    {"t: " + task(`parallel: "workflow.input.nothing"`), "failed fan_out"},
		"unknown":    {"t: {type: run, spec: {workflow: there-is-none}}", "failed child_run"},
		"instances":  {"t: " + task("parallel: 3, "+unknown), "failed instances"},
		"partitions": {"t: " + task("parallel: 501, concurrency: 2, "+unknown), "failed instances"},
		"beside":     {"flaky: " + task("retry: {maxRetries: 0}") + ", t: " + task(unknown), "failed expression"},
		"passes":     {"again: " + task("retry: {maxRetries: 0}"), "completed"},
	}
	var parents []string
	want := map[string]string{}
	for name, l := range leaves {
		parents = append(parents, fmt.Sprintf(`%s: {type: run, retry: {backoffMs: 1}, spec: {definition: {name: mid, tasks: {
			down: {type: run, retry: {backoffMs: 1}, spec: {definition: {name: leaf, tasks: {%s}}}}}}}}`, name, l.leaf))
		want[name] = l.state
	}
	run := c.Submit(c.Input("{name: top, tasks: {" + strings.Join(parents, ", ") + "}}")).Wait()
	workertest.CheckRun(t, run, "failed", want)
	for name, task := range run.GetTasks() {
		if task.GetAttempt() != 0 || len(task.GetAttempts()) != 1 {
			t.Errorf("%s ended with attempt %d: %v", name, task.GetAttempt(), task)
		}
		mid := &workertest.Handle{Nodes: c, ID: task.GetChildRun(), Workflow: c.Conn.GetWorkflow(t.Context(), task.GetChildRun(), "")}
		if down := mid.Wait().GetTasks()["down"]; (down.GetAttempt() > 0) != (name == "passes") {
			t.Errorf("%s: the task below ended with attempt %d: %v", name, down.GetAttempt(), down)
		}
	}
}

func TestNestingOfChildRunsIsLimited(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, nil)
	c.Start("n")
	name := names.NewRunID("itself")
	def, err := definition.Parse("itself.yaml", []byte(fmt.Sprintf(`{name: %[1]s, tasks: {again: {type: run, spec: {workflow: %[1]s}}}}`, name)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := library.New(c.Conn, c.Conn.Namespace).Put(t.Context(), def, library.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	h := c.Submit(c.InputOf(def))
	run := h.Wait()
	depth := 0
	for ; run.Tasks["again"].GetChildRun() != "" && run.Tasks["again"].GetAttempt() == 0; depth++ {
		h = &workertest.Handle{Nodes: c, ID: run.Tasks["again"].GetChildRun(), Workflow: c.Conn.GetWorkflow(t.Context(), run.Tasks["again"].GetChildRun(), "")}
		run = h.Wait()
	}
	workertest.CheckRun(t, run, "failed", map[string]string{"again": "failed child_run"})
	if text := run.Tasks["again"].GetError(); depth != 10 || run.Tasks["again"].GetAttempt() > 0 || text != "runs are nested more than 10 deep" {
		t.Errorf("%d deep: %s", depth, text)
	}
}

// TestCancelReachesChildRuns checks that cancelling a run also cancels its children.
func TestCancelReachesChildRuns(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"slow": {{Block: true}}})
	c.Start("n")
	h := c.Submit(c.Input(fmt.Sprintf(`{name: parent, tasks: {child: {type: run, spec: {definition: %s}}}}`, childDefinition(c, "inner", "slow", ""))))
	c.AwaitRunning("slow")
	task := h.AwaitTask("child", func(task *v1.Task) bool { return task.GetState() == "running" })
	h.Cancel(nil)
	child := &workertest.Handle{Nodes: c, ID: task.GetChildRun(), Workflow: c.Conn.GetWorkflow(t.Context(), task.GetChildRun(), "")}
	workertest.CheckRun(t, child.Wait(), "cancelled", map[string]string{"slow": "cancelled"})
	workertest.CheckRun(t, h.Wait(), "cancelled", map[string]string{"child": "cancelled"})
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

// TestNextExecutionLearnsOfTheEndOfChild checks that a later execution of the parent learns of the child's end, however
// the child ends.
func TestNextExecutionLearnsOfTheEndOfChild(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, detachLimits())
	for name, end := range map[string]struct {
		do                func(h, child *workertest.Handle)
		run, task, inside string
		text              string
	}{
		"cancelled with its parent": {func(h, _ *workertest.Handle) { h.Cancel(nil) }, "cancelled", "cancelled", "cancelled", ""},
		"terminated": {func(_, child *workertest.Handle) {
			if err := child.Conn.TerminateWorkflow(child.T.Context(), child.ID, "", "test"); err != nil {
				child.T.Error(err)
			}
		}, "failed", "failed child_run", "", "was terminated"},
		"deleted": {func(_, child *workertest.Handle) { child.Delete() }, "failed", "failed system", "", "no longer knows it"},
		"failed":  {func(h, _ *workertest.Handle) { h.Fake.Release("fails") }, "failed", "failed child_run", "failed", "exit code 3"},
		"its parent terminated": {func(h, _ *workertest.Handle) {
			if err := h.Conn.TerminateWorkflow(h.T.Context(), h.ID, "", "test"); err != nil {
				h.T.Error(err)
			}
		}, "", "", "cancelled", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := y.Nodes(t, workertest.Script{"fails": {{Block: true, Result: executor.Result{ExitCode: 3}}}})
			c.Start("n")
			def := chainBesideChild(c, "fails")
			def.Tasks["after"].ContinueOnError = true
			if name == "deleted" {
				def.Tasks["child"].Retry = nil // the child may have done its work, so it is not started twice
			}
			h := c.Submit(c.InputOf(def))
			h.AwaitTask("t24", func(x *v1.Task) bool { return x.GetState() == "completed" })
			task := h.AwaitTask("child", func(x *v1.Task) bool { return x.GetState() == "running" })
			child := &workertest.Handle{Nodes: c, ID: task.GetChildRun(), Workflow: c.Conn.GetWorkflow(t.Context(), task.GetChildRun(), "")}
			c.AwaitRunning("fails")
			end.do(h, child)
			if end.run != "" {
				run := h.Wait()
				workertest.CheckRun(t, run, end.run, map[string]string{"child": end.task})
				if text := run.GetTasks()["child"].GetError(); !strings.Contains(text, end.text) {
					t.Errorf("the task says %q", text)
				}
				if at := run.GetTasks()["child"].GetStartedAt(); at == nil || !at.AsTime().Equal(task.GetStartedAt().AsTime()) {
					t.Errorf("the task started at %v, the run of it at %v", at.AsTime(), task.GetStartedAt().AsTime())
				}
			}
			if end.inside != "" {
				if run := child.Wait(); run.GetState() != end.inside {
					t.Errorf("the child is %s", run.GetState())
				}
			}
			if name == "its parent terminated" {
				workertest.Replay(t, "continued-child-orphan", detachLimits(), child.History(""))
			}
		})
	}
}

// TestDeletedOrTerminatedChildRunHasFailed checks that an awaited child run has failed if it is deleted or terminated.
func TestDeletedOrTerminatedChildRunHasFailed(t *testing.T) {
	t.Parallel()
	c := workertest.Shared(t).Nodes(t, workertest.Script{"slow": {{Block: true}}})
	c.Start("n")
	h := c.Submit(c.Input(fmt.Sprintf(`{name: parent, tasks: {
		terminated: {type: run, retry: {maxRetries: 0}, spec: {definition: %[1]s}}, deleted: {type: run, retry: {maxRetries: 0}, spec: {definition: %[1]s}}}}`,
		childDefinition(c, "inner", "slow", ""))))
	child := func(task string) *workertest.Handle {
		return &workertest.Handle{Nodes: c, ID: h.AwaitTask(task, func(x *v1.Task) bool { return x.GetState() == "running" }).GetChildRun()}
	}
	if err := c.Conn.TerminateWorkflow(t.Context(), child("terminated").ID, "", "test"); err != nil {
		t.Error(err)
	}
	child("deleted").Delete()
	workertest.CheckRun(t, h.Wait(), "failed", map[string]string{"terminated": "failed child_run", "deleted": "failed child_run"})
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

// TestChildRunsContinueAcrossContinueAsNew checks that children of a fan-out continue while their parent continues as
// new.
func TestChildRunsContinueAcrossContinueAsNew(t *testing.T) {
	t.Parallel()
	y := workertest.SharedWithin(t, shortHistory(40))
	c := y.Nodes(t, workertest.Script{"t": {{Duration: 50 * time.Millisecond, ContextUpdate: "done=1"}}})
	c.Start("n")
	h := c.Submit(c.Input(fmt.Sprintf(`{name: parent, tasks: {
		each: {type: run, spec: {definition: %s, input: {n: "${{ input.index }}"}}, parallel: 12, concurrency: 3},
		after: {type: shell, spec: {command: x}, dependsOn: [each], condition: "parent.each.outputs.all(o, o.done == '1')"}}}`, childDefinition(c, "inner", "t", ""))))
	run := h.Wait()
	workertest.CheckRun(t, run, "completed", map[string]string{"each": "completed", "after": "completed"})
	if n := c.Calls()["t"]; n != 12 || len(executionsOf(h)) < 2 {
		t.Errorf("%d children, %d executions", n, len(executionsOf(h)))
	}
}
