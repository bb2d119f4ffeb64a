package run_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"switchyard/activities/executor/fake"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/names"
)

// resetRun resets the current execution of the run to a workflow task, as Temporal's CLI does, and returns the run with
// its new execution. It receives again what it received after that task, except for what left names.
func resetRun(h *workertest.Handle, finished int64, left ...enumspb.ResetReapplyExcludeType) *workertest.Handle {
	h.T.Helper()
	res, err := h.Conn.WorkflowService().ResetWorkflowExecution(h.T.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: client.DefaultNamespace, WorkflowExecution: describeRun(h).GetWorkflowExecutionInfo().GetExecution(),
		Reason: "test", WorkflowTaskFinishEventId: finished, RequestId: uuid.NewString(),
		ResetReapplyExcludeTypes: left,
	})
	if err != nil {
		h.T.Fatal(err)
	}
	return &workertest.Handle{Nodes: h.Nodes, ID: h.ID, Workflow: h.Conn.GetWorkflow(h.T.Context(), h.ID, res.GetRunId()), Chain: res.GetRunId()}
}

// firstWorkflowTask returns the event ID of the first completed workflow task of the current execution. lastTask
// returns that of the last one.
func firstWorkflowTask(h *workertest.Handle) int64 { return completedTasks(h.History(""))[0] }

func lastWorkflowTask(h *workertest.Handle) int64 {
	all := completedTasks(h.History(""))
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

// countStartedChildren counts the children that the current execution has recorded as started.
func countStartedChildren(h *workertest.Handle) int {
	n := 0
	for _, e := range h.History("") {
		if e.GetEventType() == enumspb.EVENT_TYPE_CHILD_WORKFLOW_EXECUTION_STARTED {
			n++
		}
	}
	return n
}

// isExecutionOpen reports whether an execution is open.
func isExecutionOpen(c *workertest.Nodes, execution *commonpb.WorkflowExecution) bool {
	c.T.Helper()
	d := workertest.Describe(c.T, c.Conn, execution.GetWorkflowId(), execution.GetRunId())
	return d.GetWorkflowExecutionInfo().GetCloseTime() == nil
}

// childExecutions returns the open children of the current execution.
func childExecutions(h *workertest.Handle) (all []*commonpb.WorkflowExecution) {
	for _, p := range describeRun(h).GetPendingChildren() {
		all = append(all, &commonpb.WorkflowExecution{WorkflowId: p.GetWorkflowId(), RunId: p.GetRunId()})
	}
	return all
}

// blockingChildren returns nodes, and the input of a run with two partitions and a child run, which block on their first
// execution.
func blockingChildren(t *testing.T) (*workertest.Nodes, *historyv1.RunInput) {
	t.Helper()
	old := []fake.Step{{Block: true, Output: "n=old"}, {Output: "n=new"}}
	each := append(slices.Repeat(old[:1], 8), old[1])
	c := workertest.SharedWithin(t, inPartitions).Nodes(t, workertest.Script{"a": old, "each": each})
	c.Start("n")
	return c, c.Input(fmt.Sprintf(`{name: twice, tasks: {each: {type: shell, spec: {command: x}, parallel: 8},
		child: {type: run, spec: {definition: %s}}}}`, childDefinition(c, "inner", "a", "")))
}

// submitWithChildren submits the input of blockingChildren, and returns the run and its children when all of them run.
func submitWithChildren(c *workertest.Nodes, in *historyv1.RunInput) (*workertest.Handle, []*commonpb.WorkflowExecution) {
	c.T.Helper()
	h := c.Submit(in)
	c.AwaitRunning("a")
	workertest.Eventually(c.T, "all instances run", func() bool { return c.Calls()["each"] == 8 })
	workertest.Eventually(c.T, "all children are open", func() bool { return countStartedChildren(h) == 3 })
	return h, childExecutions(h)
}

// TestResetToBeforeChildrenEndsThem checks that children end when their run is reset to before their start, and that
// the run starts new ones.
func TestResetToBeforeChildrenEndsThem(t *testing.T) {
	t.Parallel()
	c, in := blockingChildren(t)
	h, before := submitWithChildren(c, in)
	reset := resetRun(h, firstWorkflowTask(h))
	run := reset.Wait() // the old children block
	workertest.CheckRun(t, run, "completed", map[string]string{"each": "completed", "child": "completed"})
	if calls := c.Calls(); calls["each"] != 16 || calls["a"] != 2 {
		t.Errorf("executions: %v", calls)
	}
	for _, i := range instancesPage(reset, reset.Partition(0, "each", 4).ID, &historyv1.InstancesRequest{Task: "each", From: 4}).GetInstances() {
		if got := i.GetResult().GetOutput().GetFields()["n"].GetStringValue(); got != "new" {
			t.Errorf("the output of instance %d is %q", i.GetIndex(), got)
		}
	}
	for _, child := range before {
		workertest.Eventually(t, "the child of the terminated execution has ended", func() bool { return !isExecutionOpen(c, child) })
	}
	if len(before) != 3 {
		t.Errorf("%d children were open", len(before))
	}
}

// TestResetToAfterChildrenKeepsThem checks that children stay with a run that is reset to after their start, even if
// the run continues as new before another reset.
func TestResetToAfterChildrenKeepsThem(t *testing.T) {
	t.Parallel()
	c, in := blockingChildren(t)
	h, before := submitWithChildren(c, in)
	last := lastWorkflowTask(h)
	reset := resetRun(h, last)
	reset = resetRun(reset, last) // the children move to the new execution twice
	awaitParentCheck(c, before)
	for _, child := range before {
		if !isExecutionOpen(c, child) {
			t.Errorf("%s has ended", child.GetWorkflowId())
		}
	}
	c.Fake.Release("a")
	c.Fake.Release("each")
	workertest.CheckRun(t, reset.Wait(), "completed", map[string]string{"each": "completed", "child": "completed"})
	if calls := c.Calls(); calls["each"] != 8 || calls["a"] != 1 {
		t.Errorf("executions: %v", calls)
	}
}

// TestResetAfterContinueAsNewKeepsChildren checks that a run that is reset after continue-as-new keeps the children of
// earlier executions.
func TestResetAfterContinueAsNewKeepsChildren(t *testing.T) {
	t.Parallel()
	c := workertest.SharedWithin(t, quietLimits).Nodes(t, workertest.Script{"each": {{Block: true}}, "a": {{Block: true}}})
	c.Start("n")
	document := fmt.Sprintf(`{name: long, tasks: {each: {type: shell, spec: {command: x}, parallel: 8},
		child: {type: run, spec: {definition: %s}}, t0: {type: shell, spec: {command: x}}`, childDefinition(c, "inner", "a", ""))
	for i := range 15 {
		document += fmt.Sprintf(", t%d: {type: shell, spec: {command: x}, dependsOn: [t%d]}", i+1, i)
	}
	h := c.Submit(c.Input(document + "}}"))
	c.AwaitRunning("a")
	h.AwaitTask("t15", func(task *v1.Task) bool { return task.GetState() == "completed" })
	workertest.Eventually(t, "the run is in its last execution", func() bool {
		history := h.History("") // a longer one would continue as new
		return len(executionsOf(h)) > 1 && len(history) <= 60 && len(completedTasks(history)) > 0
	})
	first := executionsOf(h)[len(executionsOf(h))-1]
	var before []*commonpb.WorkflowExecution
	for _, e := range h.History(first) {
		if started := e.GetChildWorkflowExecutionStartedEventAttributes(); started != nil {
			before = append(before, started.GetWorkflowExecution())
		}
	}
	reset := resetRun(h, firstWorkflowTask(h))
	awaitParentCheck(c, before)
	c.Fake.Release("a")
	c.Fake.Release("each")
	workertest.CheckRun(t, reset.Wait(), "completed", map[string]string{"each": "completed", "child": "completed", "t15": "completed"})
	if calls := c.Calls(); calls["each"] != 8 || calls["a"] != 1 || len(before) != 3 {
		t.Errorf("%d children; executions: %v", len(before), calls)
	}
}

// awaitParentCheck waits until children have started to await the end of their parents, and have checked them.
func awaitParentCheck(c *workertest.Nodes, children []*commonpb.WorkflowExecution) {
	c.T.Helper()
	for _, child := range children {
		workertest.Eventually(c.T, "the child awaits its parent", func() bool {
			d := workertest.Describe(c.T, c.Conn, child.GetWorkflowId(), child.GetRunId())
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

// TestResetMutexHolderWaitsForItsOldAttempt checks that a task with a mutex that a reset starts again does not run
// beside its old attempt, and that the next waiting run then gets the mutex.
func TestResetMutexHolderWaitsForItsOldAttempt(t *testing.T) {
	t.Parallel()
	y := workertest.Shared(t)
	c := y.Nodes(t, workertest.Script{"holds": {{Block: true}, {Block: true}}})
	c.Start("n")
	mutex := uniqueLock()
	h := c.Submit(c.Input(fmt.Sprintf(`{name: holder, tasks: {holds: {type: shell, spec: {command: x}, mutex: %s}}}`, mutex)))
	c.AwaitRunning("holds")
	waiter := c.Submit(c.Input(fmt.Sprintf(`{name: waiter, tasks: {wants: {type: shell, spec: {command: x}, mutex: %s}}}`, mutex)))
	waiter.AwaitTask("wants", func(task *v1.Task) bool { return task.GetState() == "queued" && task.GetError() != "" })
	reset := resetRun(h, firstWorkflowTask(h))
	most := 0
	err := c.Fake.Await(t.Context(), func(calls []fake.Call, running map[string]int) bool {
		most = max(most, running["holds"]+running["wants"])
		return len(calls) > 1
	})
	if err != nil {
		t.Fatal(err)
	}
	if most != 1 {
		t.Errorf("%d attempts with the mutex ran at once", most)
	}
	c.Fake.Release("holds")
	workertest.CheckRun(t, reset.Wait(), "completed", map[string]string{"holds": "completed"})
	workertest.CheckRun(t, waiter.Wait(), "completed", map[string]string{"wants": "completed"})
	y.AwaitLockEnd(t, names.TaskLock(mutex))
}

// TestResetPartitionRunsItsInstancesAnew checks that a partition that is itself reset runs its instances anew, and that
// its run takes their results.
func TestResetPartitionRunsItsInstancesAnew(t *testing.T) {
	t.Parallel()
	c, in := blockingChildren(t)
	h, before := submitWithChildren(c, in)
	part := h.Partition(0, "each", 4)
	resetRun(part, firstWorkflowTask(part))
	// The old attempts of the partition block, and those of the other partition block until they are released.
	workertest.Eventually(t, "the instances have run again", func() bool { return c.Calls()["each"] == 12 })
	c.Fake.Release("a")
	c.Fake.Release("each")
	workertest.CheckRun(t, h.Wait(), "completed", map[string]string{"each": "completed", "child": "completed"})
	for _, i := range instancesPage(h, part.ID, &historyv1.InstancesRequest{Task: "each", From: 4}).GetInstances() {
		if i.GetState() != "completed" || i.GetResult().GetOutput().GetFields()["n"].GetStringValue() != "new" {
			t.Errorf("instance %d is %v", i.GetIndex(), i)
		}
	}
	for _, child := range before {
		workertest.Eventually(t, "no child is left", func() bool { return !isExecutionOpen(c, child) })
	}
}
