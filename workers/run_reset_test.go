package workers

import (
	"fmt"
	"testing"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"switchyard/activities/executor/fake"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/limits"
	"switchyard/workflows/names"
)

// reset resets the current execution of the run to a workflow task, as Temporal's CLI does, and returns the run with
// its new execution.
func (h *handle) reset(finished int64) *handle {
	h.t.Helper()
	res, err := h.conn.WorkflowService().ResetWorkflowExecution(h.t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: client.DefaultNamespace, WorkflowExecution: h.described().GetWorkflowExecutionInfo().GetExecution(),
		Reason: "test", WorkflowTaskFinishEventId: finished, RequestId: uuid.NewString(),
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return &handle{workerSet: h.workerSet, id: h.id, run: h.conn.GetWorkflow(h.t.Context(), h.id, res.GetRunId()), chain: res.GetRunId()}
}

// firstTask returns the event ID of the first completed workflow task of the current execution. lastTask returns that
// of the last one.
func (h *handle) firstTask() int64 { return completedTasks(h.history(""))[0] }

func (h *handle) lastTask() int64 {
	all := completedTasks(h.history(""))
	return all[len(all)-1]
}

func completedTasks(history []*historypb.HistoryEvent) (ids []int64) {
	for _, e := range history {
		if e.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			ids = append(ids, e.GetEventId())
		}
	}
	return ids
}

// startedChildren counts the children that the current execution has recorded as started.
func (h *handle) startedChildren() int {
	n := 0
	for _, e := range h.history("") {
		if e.GetEventType() == enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED {
			n++
		}
	}
	return n
}

// isOpen reports whether an execution is open.
func (c *workerSet) isOpen(execution *commonpb.WorkflowExecution) bool {
	c.t.Helper()
	d := describe(c.t, c.conn, execution.GetWorkflowId(), execution.GetRunId())
	return d.GetWorkflowExecutionInfo().GetCloseTime() == nil
}

// childExecutions returns the open children of the current execution.
func (h *handle) childExecutions() (all []*commonpb.WorkflowExecution) {
	for _, p := range h.described().GetPendingChildren() {
		all = append(all, &commonpb.WorkflowExecution{WorkflowId: p.GetWorkflowId(), RunId: p.GetRunId()})
	}
	return all
}

// resetWorkers returns nodes, and the input of a run with two parts and a child run, which block on their first
// execution.
func resetWorkers(t *testing.T, limits limits.Run) (*workerSet, *v1.RunInput) {
	t.Helper()
	limits.Instances, limits.PartitionInstances = 5, 4
	old := []fake.Step{{Block: true, Output: "n=old"}, {Output: "n=new"}}
	each := []fake.Step{}
	for range 8 {
		each = append(each, old[0])
	}
	c := own(t, ControlConfig{limits: limits}).workers(t, script{"a": old, "each": append(each, old[1])})
	c.start("n")
	return c, c.input(fmt.Sprintf(`{name: twice, tasks: {each: {type: shell, spec: {command: x}, parallel: 8},
		child: {type: run, spec: {definition: %s}}}}`, c.childDefinition("inner", "a", "")))
}

// openChildren submits the input of resetWorkers, and returns the run and its children when all of them run.
func (c *workerSet) openChildren(in *v1.RunInput) (*handle, []*commonpb.WorkflowExecution) {
	c.t.Helper()
	h := c.submit(in)
	c.running("a")
	eventually(c.t, "all instances run", func() bool { return c.calls()["each"] == 8 })
	eventually(c.t, "all children are open", func() bool { return h.startedChildren() == 3 })
	return h, h.childExecutions()
}

// TestResetToBeforeChildrenEndsThem checks that children end when their run is reset to before their start, and that
// the run starts new ones.
func TestResetToBeforeChildrenEndsThem(t *testing.T) {
	t.Parallel()
	c, in := resetWorkers(t, limits.Run{})
	h, before := c.openChildren(in)
	reset := h.reset(h.firstTask())
	run := reset.wait() // the old children block
	want(t, run, "completed", map[string]string{"each": "completed", "child": "completed"})
	if calls := c.calls(); calls["each"] != 16 || calls["a"] != 2 {
		t.Errorf("executions: %v", calls)
	}
	for _, i := range reset.page(reset.child(0, "each", 4).id, &v1.InstancesRequest{Task: "each", From: 4}).GetInstances() {
		if got := i.GetResult().GetOutput().GetFields()["n"].GetStringValue(); got != "new" {
			t.Errorf("the output of instance %d is %q", i.GetIndex(), got)
		}
	}
	for _, child := range before {
		eventually(t, "the child of the terminated execution has ended", func() bool { return !c.isOpen(child) })
	}
	if len(before) != 3 {
		t.Errorf("%d children were open", len(before))
	}
}

// TestResetToAfterChildrenKeepsThem checks that children stay with a run that is reset to after their start, even if
// the run continues as new before another reset.
func TestResetToAfterChildrenKeepsThem(t *testing.T) {
	t.Parallel()
	c, in := resetWorkers(t, limits.Run{})
	h, before := c.openChildren(in)
	last := h.lastTask()
	reset := h.reset(last)
	reset = reset.reset(last) // the children move to the new execution twice
	c.awaitParentCheck(before)
	for _, child := range before {
		if !c.isOpen(child) {
			t.Errorf("%s has ended", child.GetWorkflowId())
		}
	}
	c.fake.Release("a")
	c.fake.Release("each")
	want(t, reset.wait(), "completed", map[string]string{"each": "completed", "child": "completed"})
	if calls := c.calls(); calls["each"] != 8 || calls["a"] != 1 {
		t.Errorf("executions: %v", calls)
	}
}

// TestResetAfterContinueAsNewKeepsChildren checks that a run that is reset after continue-as-new keeps the children of
// earlier executions.
func TestResetAfterContinueAsNewKeepsChildren(t *testing.T) {
	t.Parallel()
	c := own(t, ControlConfig{limits: limits.Run{Instances: 5, PartitionInstances: 4, HistoryEvents: 60}}).workers(t, script{"each": {{Block: true}}, "a": {{Block: true}}})
	c.start("n")
	document := fmt.Sprintf(`{name: long, tasks: {each: {type: shell, spec: {command: x}, parallel: 8},
		child: {type: run, spec: {definition: %s}}, t0: {type: shell, spec: {command: x}}`, c.childDefinition("inner", "a", ""))
	for i := range 15 {
		document += fmt.Sprintf(", t%d: {type: shell, spec: {command: x}, dependsOn: [t%d]}", i+1, i)
	}
	h := c.submit(c.input(document + "}}"))
	c.running("a")
	h.until("t15", func(task *v1.Task) bool { return task.GetState() == "completed" })
	eventually(t, "the run is in another execution", func() bool { return len(h.executions()) > 1 && h.pendingChildren() == 0 })
	first := h.executions()[len(h.executions())-1]
	var before []*commonpb.WorkflowExecution
	for _, e := range h.history(first) {
		if started := e.GetChildWorkflowExecutionStartedEventAttributes(); started != nil {
			before = append(before, started.GetWorkflowExecution())
		}
	}
	reset := h.reset(h.firstTask())
	c.awaitParentCheck(before)
	c.fake.Release("a")
	c.fake.Release("each")
	want(t, reset.wait(), "completed", map[string]string{"each": "completed", "child": "completed", "t15": "completed"})
	if calls := c.calls(); calls["each"] != 8 || calls["a"] != 1 || len(before) != 3 {
		t.Errorf("%d children; executions: %v", len(before), calls)
	}
}

// awaitParentCheck waits until children have started to await the end of their parents, and have checked them.
func (c *workerSet) awaitParentCheck(children []*commonpb.WorkflowExecution) {
	c.t.Helper()
	for _, child := range children {
		eventually(c.t, "the child awaits its parent", func() bool {
			d := describe(c.t, c.conn, child.GetWorkflowId(), child.GetRunId())
			for _, a := range d.GetPendingActivities() {
				// The activity heartbeats every 4 s, after several checks.
				if a.GetActivityType().GetName() == names.AwaitRunsActivity && a.GetLastHeartbeatTime() != nil {
					return true
				}
			}
			return d.GetWorkflowExecutionInfo().GetCloseTime() != nil
		})
	}
}

// TestResetOfMutexHolder checks that a task with a mutex that a reset starts again does not run beside its old attempt,
// and that the next waiting run then gets the mutex.
func TestResetOfMutexHolder(t *testing.T) {
	t.Parallel()
	y := own(t, ControlConfig{locker: quickLocker})
	c := y.workers(t, script{"holds": {{Block: true}, {Block: true}}})
	c.start("n")
	h := c.submit(c.input(`{name: holder, tasks: {holds: {type: shell, spec: {command: x}, mutex: m}}}`))
	c.running("holds")
	waiter := c.submit(c.input(`{name: waiter, tasks: {wants: {type: shell, spec: {command: x}, mutex: m}}}`))
	waiter.until("wants", func(task *v1.Task) bool { return task.GetState() == "queued" && task.GetError() != "" })
	reset := h.reset(h.firstTask())
	most := 0
	err := c.fake.Await(t.Context(), func(calls []fake.Call, running map[string]int) bool {
		most = max(most, running["holds"]+running["wants"])
		return len(calls) > 1
	})
	if err != nil {
		t.Fatal(err)
	}
	if most != 1 {
		t.Errorf("%d attempts with the mutex ran at once", most)
	}
	c.fake.Release("holds")
	want(t, reset.wait(), "completed", map[string]string{"holds": "completed"})
	want(t, waiter.wait(), "completed", map[string]string{"wants": "completed"})
	(&holders{cluster: y, t: t}).closedLock(names.TaskLock("m"))
}

// TestResetOfPart checks that a part that is itself reset runs its instances anew, and that its run takes their
// results.
func TestResetOfPart(t *testing.T) {
	t.Parallel()
	c, in := resetWorkers(t, limits.Run{})
	h, before := c.openChildren(in)
	part := h.child(0, "each", 4)
	part.reset(part.firstTask())
	// The old attempts of the part block, and those of the other part block until they are released.
	eventually(t, "the instances have run again", func() bool { return c.calls()["each"] == 12 })
	c.fake.Release("a")
	c.fake.Release("each")
	want(t, h.wait(), "completed", map[string]string{"each": "completed", "child": "completed"})
	for _, i := range h.page(part.id, &v1.InstancesRequest{Task: "each", From: 4}).GetInstances() {
		if i.GetState() != "completed" || i.GetResult().GetOutput().GetFields()["n"].GetStringValue() != "new" {
			t.Errorf("instance %d is %v", i.GetIndex(), i)
		}
	}
	for _, child := range before {
		eventually(t, "no child is left", func() bool { return !c.isOpen(child) })
	}
}
