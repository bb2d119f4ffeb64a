package workers

import (
	"fmt"
	"strings"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/executor"
	"switchyard/activities/executor/fake"
	"switchyard/activities/library"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// childDefinition returns a workflow of one task that the nodes of the test accept.
func (c *workerSet) childDefinition(name, task, more string) string {
	return fmt.Sprintf(`{name: %s, %s tasks: {%s: {type: shell, spec: {command: x}, retry: {maxRetries: 0},
		resources: {cores: 0}, constraints: {nodeLabels: [%s]}}}}`, name, more, task, c.label)
}

// keep stores the workflow of childDefinition under a name that is unique to this test.
func (c *workerSet) keep(task, more string) (name string) {
	c.t.Helper()
	name = names.NewRunID("stored")
	def, err := definition.Parse("stored.yaml", []byte(c.childDefinition(name, task, more)))
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := library.New(c.conn, c.conn.Namespace).Put(c.t.Context(), def, nil, false); err != nil {
		c.t.Fatal(err)
	}
	return name
}

// TestChildRun checks that a task of type run starts another run with its own input, whose final context is the task's
// output.
func TestChildRun(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("b", 30_000)
	c := shared(t).workers(t, script{
		"make":  {{Output: "tag=v7"}},
		"build": {{ContextUpdate: `{"digest": "abc"}`}},
		"large": {{ContextUpdate: fmt.Sprintf(`{"text": %q}`, big)}},
	})
	c.start("n")
	h := c.submit(c.input(fmt.Sprintf(`{name: parent, tasks: {
		make: {type: shell, spec: {command: x}},
		child: {type: run, dependsOn: [make], spec: {input: {tag: "${{ parent.make.output.tag }}", n: 3}, definition: %s}},
		named: {type: run, spec: {workflow: "%s"}},
		after: {type: shell, spec: {command: x}, dependsOn: [child, named],
			condition: "parent.child.output.digest == 'abc' && parent.child.exitCode == 0 && size(parent.named.output.text) == 30000"}}}`,
		c.childDefinition("inner", "build", `context: {base: "1"}, inputs: {tag: {type: string, required: true}, n: {type: integer}, kind: {default: plain}},`), c.keep("large", ""))))
	run := h.wait()
	want(t, run, "completed", map[string]string{"child": "completed", "named": "completed", "after": "completed"})
	task := run.Tasks["child"]
	if got := fmt.Sprint(task.GetResult().GetOutput().AsMap()); got != "map[base:1 digest:abc]" {
		t.Errorf("output of the child: %s", got)
	}
	if run.Tasks["named"].GetResult().GetOutput() != nil && h.records["named"] == "" {
		t.Errorf("30 KB of output travel: %v", run.Tasks["named"])
	}
	for _, e := range h.history("") {
		// Small end events leave room in the parent's history for many children.
		if end := e.GetChildWorkflowExecutionCompletedEventAttributes(); end != nil && proto.Size(end) > 1<<10 {
			t.Errorf("the end of a child takes %d bytes", proto.Size(end))
		}
	}
	child := &handle{workerSet: c, id: task.GetChildRun(), run: c.conn.GetWorkflow(t.Context(), task.GetChildRun(), "")}
	inner := child.wait()
	if got := fmt.Sprint(inner.GetInput().AsMap()); got != "map[kind:plain n:3 tag:v7]" {
		t.Errorf("input of the child: %s", got)
	}
	if got := child.attributes(); got.Workflow != "inner" || got.Parent != h.id || got.Trigger != v1.TriggerChild || got.State != "completed" {
		t.Errorf("search attributes of the child: %+v", got)
	}
	replay(t, "child", limits.Run{}, h.history(""))
}

// TestChildRunFails checks that a child that does not complete is a failed attempt with the child's error.
func TestChildRunFails(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"bad": {fake.Exit(3)}, "slow": {{Block: true}}, "flaky": {fake.Exit(1), {}}})
	c.start("n")
	h := c.submit(c.input(fmt.Sprintf(`{name: parent, tasks: {
		bad: {type: run, spec: {definition: %s}, retry: {maxRetries: 0}},
		flaky: {type: run, spec: {definition: %s}, retry: {maxRetries: 1, backoffMs: 1}},
		late: {type: run, spec: {definition: %s}, deadline: 1s, retry: {maxRetries: 0}},
		unknown: {type: run, spec: {workflow: there-is-none}},
		input: {type: run, spec: {workflow: %s}},
		expression: {type: run, dependsOn: [flaky], spec: {workflow: x, input: {a: "${{ parent.flaky.output.nothing }}"}}}}}`,
		c.childDefinition("inner", "bad", ""), c.childDefinition("inner", "flaky", ""), c.childDefinition("inner", "slow", ""),
		c.keep("never", "inputs: {n: {type: integer, required: true}},"))))
	run := h.wait()
	want(t, run, "failed", map[string]string{
		"bad": "failed child_run", "flaky": "completed", "late": "failed deadline", "unknown": "failed child_run",
		"input": "failed child_run", "expression": "failed expression"})
	for task, text := range map[string]string{
		"bad": `failed: task "bad" failed: exit code 3`, "late": "within its deadline of 1s", "unknown": `no definition is stored under the name "there-is-none"`,
		"input": "input n is missing",
	} {
		if got := run.Tasks[task]; !strings.Contains(got.GetError(), text) {
			t.Errorf("%s: %s", task, got.GetError())
		}
	}
	if bad := run.Tasks["bad"]; bad.GetResult().GetExitCode() != 1 || bad.GetChildRun() == "" || !strings.Contains(bad.GetError(), bad.GetChildRun()) {
		t.Errorf("bad: %v", bad)
	}
	if flaky := run.Tasks["flaky"]; flaky.GetAttempt() != 1 || c.calls()["flaky"] != 2 || c.calls()["never"] != 0 {
		t.Errorf("flaky: %v; calls %v", flaky, c.calls())
	}
	late := &handle{workerSet: c, id: run.Tasks["late"].GetChildRun()}
	if s := late.described().GetWorkflowExecutionInfo().GetStatus(); s != enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED {
		t.Errorf("the child that took too long is %s", s)
	}
}

// TestChildRunsAreNotEndless checks that the nesting of child runs is limited.
func TestChildRunsAreNotEndless(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, nil)
	c.start("n")
	name := names.NewRunID("itself")
	def, err := definition.Parse("itself.yaml", []byte(fmt.Sprintf(`{name: %[1]s, tasks: {again: {type: run, spec: {workflow: %[1]s}, retry: {maxRetries: 0}}}}`, name)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := library.New(c.conn, c.conn.Namespace).Put(t.Context(), def, nil, false); err != nil {
		t.Fatal(err)
	}
	h := c.submit(c.inputOf(def))
	run := h.wait()
	depth := 0
	for ; run.Tasks["again"].GetChildRun() != ""; depth++ {
		h = &handle{workerSet: c, id: run.Tasks["again"].GetChildRun(), run: c.conn.GetWorkflow(t.Context(), run.Tasks["again"].GetChildRun(), "")}
		run = h.wait()
	}
	want(t, run, "failed", map[string]string{"again": "failed child_run"})
	if text := run.Tasks["again"].GetError(); depth != 10 || text != "runs are nested more than 10 deep" {
		t.Errorf("%d deep: %s", depth, text)
	}
}

// TestChildRunIsCancelled checks that cancelling a run, or one of its tasks, also cancels the children.
func TestChildRunIsCancelled(t *testing.T) {
	t.Parallel()
	for name, cancel := range map[string]func(*handle){
		"with its parent": func(h *handle) { h.signal(nil) },
		"with its task": func(h *handle) {
			if err := h.update(names.CancelTaskUpdate, &v1.TaskCommand{Task: "child"}); err != nil {
				h.t.Error(err)
			}
		},
		"when its parent is terminated": func(h *handle) {
			if err := h.conn.TerminateWorkflow(h.t.Context(), h.id, "", "test"); err != nil {
				h.t.Error(err)
			}
		},
		"alone": func(h *handle) {
			child := h.until("child", func(task *v1.Task) bool { return task.GetChildRun() != "" })
			if err := h.conn.SignalWorkflow(h.t.Context(), child.GetChildRun(), "", names.CancelSignal, nil); err != nil {
				h.t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := shared(t).workers(t, script{"slow": {{Block: true}}})
			c.start("n")
			h := c.submit(c.input(fmt.Sprintf(`{name: parent, tasks: {child: {type: run, spec: {definition: %s}}}}`, c.childDefinition("inner", "slow", ""))))
			c.running("slow")
			task := h.until("child", func(task *v1.Task) bool { return task.GetState() == "running" })
			cancel(h)
			child := &handle{workerSet: c, id: task.GetChildRun(), run: c.conn.GetWorkflow(t.Context(), task.GetChildRun(), "")}
			want(t, child.wait(), "cancelled", map[string]string{"slow": "cancelled"})
			switch name {
			case "when its parent is terminated":
			case "alone":
				want(t, h.wait(), "failed", map[string]string{"child": "failed child_run"})
			case "with its task":
				want(t, h.wait(), "completed", map[string]string{"child": "cancelled task_cancelled"})
			default:
				want(t, h.wait(), "cancelled", map[string]string{"child": "cancelled"})
			}
		})
	}
}

// TestOpenChildHoldsNothingUp checks that a long child run runs once while its parent continues as new several times.
func TestOpenChildHoldsNothingUp(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: detachLimits()})
	c := y.workers(t, script{"slow": {{Block: true, ContextUpdate: `{"n": 7}`}}})
	c.start("n")
	h := c.submit(c.inputOf(c.chainBesideChild("slow")))
	h.until("t24", func(x *v1.Task) bool { return x.GetState() == "completed" })
	task := h.until("child", func(x *v1.Task) bool { return x.GetState() == "running" })
	if n := len(h.executions()); n < 3 || task.GetChildRun() == "" {
		t.Errorf("%d executions: %v", n, task)
	}
	c.fake.Release("slow")
	run := h.wait()
	want(t, run, "completed", map[string]string{"child": "completed", "after": "completed"})
	if n := c.calls()["slow"]; n != 1 || run.GetTasks()["child"].GetResult().GetOutput().GetFields()["n"].GetNumberValue() != 7 {
		t.Errorf("it ran %d times and left %v", n, run.GetTasks()["child"])
	}
	executions := h.executions()
	for name, i := range map[string]int{"first": 0, "last": len(executions) - 1} {
		replay(t, "continued-child-"+name, detachLimits(), h.history(executions[i]))
	}
}

// TestChildEndsAfterContinueAsNew checks that a later execution of the parent learns of the child's end, however the
// child ends.
func TestChildEndsAfterContinueAsNew(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: detachLimits()})
	for name, end := range map[string]struct {
		do                func(h, child *handle)
		run, task, inside string
		text              string
	}{
		"cancelled with its parent": {func(h, _ *handle) { h.signal(nil) }, "cancelled", "cancelled", "cancelled", ""},
		"cancelled with its task": {func(h, _ *handle) {
			if err := h.update(names.CancelTaskUpdate, &v1.TaskCommand{Task: "child"}); err != nil {
				h.t.Error(err)
			}
		}, "completed", "cancelled task_cancelled", "cancelled", ""},
		"cancelled alone": {func(_, child *handle) {
			if err := child.conn.CancelWorkflow(child.t.Context(), child.id, ""); err != nil {
				child.t.Error(err)
			}
		}, "failed", "failed child_run", "cancelled", "was cancelled"},
		"terminated": {func(_, child *handle) {
			if err := child.conn.TerminateWorkflow(child.t.Context(), child.id, "", "test"); err != nil {
				child.t.Error(err)
			}
		}, "failed", "failed child_run", "", "was terminated"},
		"deleted": {func(_, child *handle) { child.delete() }, "failed", "failed system", "", "does not know it any more"},
		"failed":  {func(h, _ *handle) { h.fake.Release("fails") }, "failed", "failed child_run", "failed", "exit code 3"},
		"its parent terminated": {func(h, _ *handle) {
			if err := h.conn.TerminateWorkflow(h.t.Context(), h.id, "", "test"); err != nil {
				h.t.Error(err)
			}
		}, "", "", "cancelled", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := y.workers(t, script{"fails": {{Block: true, Result: executor.Result{ExitCode: 3}}}})
			c.start("n")
			def := c.chainBesideChild("fails")
			def.Tasks["after"].ContinueOnError = true
			h := c.submit(c.inputOf(def))
			h.until("t24", func(x *v1.Task) bool { return x.GetState() == "completed" })
			task := h.until("child", func(x *v1.Task) bool { return x.GetState() == "running" })
			child := &handle{workerSet: c, id: task.GetChildRun(), run: c.conn.GetWorkflow(t.Context(), task.GetChildRun(), "")}
			c.running("fails")
			end.do(h, child)
			if end.run != "" {
				run := h.wait()
				want(t, run, end.run, map[string]string{"child": end.task})
				if text := run.GetTasks()["child"].GetError(); !strings.Contains(text, end.text) {
					t.Errorf("the task says %q", text)
				}
				if at := run.GetTasks()["child"].GetStartedAt(); at == nil || !at.AsTime().Equal(task.GetStartedAt().AsTime()) {
					t.Errorf("the task started at %v, the run of it at %v", at.AsTime(), task.GetStartedAt().AsTime())
				}
			}
			if end.inside != "" {
				if run := child.wait(); run.GetState() != end.inside {
					t.Errorf("the child is %s", run.GetState())
				}
			}
			if name == "its parent terminated" {
				replay(t, "continued-child-orphan", detachLimits(), child.history(""))
			}
		})
	}
}

// TestChildRunIsTakenAway checks that an awaited child run has failed if it is deleted or terminated.
func TestChildRunIsTakenAway(t *testing.T) {
	t.Parallel()
	c := shared(t).workers(t, script{"slow": {{Block: true}}})
	c.start("n")
	h := c.submit(c.input(fmt.Sprintf(`{name: parent, tasks: {
		terminated: {type: run, retry: {maxRetries: 0}, spec: {definition: %[1]s}}, deleted: {type: run, retry: {maxRetries: 0}, spec: {definition: %[1]s}}}}`,
		c.childDefinition("inner", "slow", ""))))
	child := func(task string) *handle {
		return &handle{workerSet: c, id: h.until(task, func(x *v1.Task) bool { return x.GetState() == "running" }).GetChildRun()}
	}
	if err := c.conn.TerminateWorkflow(t.Context(), child("terminated").id, "", "test"); err != nil {
		t.Error(err)
	}
	child("deleted").delete()
	want(t, h.wait(), "failed", map[string]string{"terminated": "failed child_run", "deleted": "failed child_run"})
}

// chainBesideChild returns a long chain of short tasks beside a child run of one task.
func (c *workerSet) chainBesideChild(task string) *v1.Definition {
	c.t.Helper()
	def, err := definition.Parse("parent.yaml", []byte(fmt.Sprintf(`{name: parent, tasks: {
		child: {type: run, retry: {maxRetries: 0}, spec: {definition: %s}},
		after: {type: shell, spec: {command: x}, dependsOn: [child], resources: {cores: 0}}}}`,
		c.childDefinition("inner", task, "failurePolicy: continue,"))))
	if err != nil {
		c.t.Fatal(err)
	}
	for name, task := range chainBeside(25, map[string]*v1.TaskDefinition{}).GetTasks() {
		def.Tasks[name] = task
	}
	return def
}

// TestChildRunsAcrossContinueAsNew checks that children of a fan-out continue while their parent continues as new.
func TestChildRunsAcrossContinueAsNew(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{limits: shortHistory(40)})
	c := y.workers(t, script{"t": {{Duration: 50 * time.Millisecond, ContextUpdate: "done=1"}}})
	c.start("n")
	h := c.submit(c.input(fmt.Sprintf(`{name: parent, tasks: {
		each: {type: run, spec: {definition: %s, input: {n: "${{ input.index }}"}}, parallel: 12, concurrency: 3},
		after: {type: shell, spec: {command: x}, dependsOn: [each], condition: "parent.each.outputs.all(o, o.done == '1')"}}}`, c.childDefinition("inner", "t", ""))))
	run := h.wait()
	want(t, run, "completed", map[string]string{"each": "completed", "after": "completed"})
	if n := c.calls()["t"]; n != 12 || len(h.executions()) < 2 {
		t.Errorf("%d children, %d executions", n, len(h.executions()))
	}
}

func (h *handle) described() *workflowservice.DescribeWorkflowExecutionResponse {
	h.t.Helper()
	d := describe(h.t, h.conn, h.id, "")
	return d
}
