package run_test

import (
	"fmt"
	"time"

	"go.temporal.io/api/workflowservice/v1"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workers/workertest"
	"switchyard/workflows/limits"
)

// shortHistory makes a small run, and a partition of 20 instances, continue as new often, even though they are never quiet. Temporal
// puts at least a second between two executions.
var shortHistory = limits.Run{HistoryEvents: 60, HardHistoryEvents: 60, Instances: 5, PartitionInstances: 20}

// quietLimits makes a small run continue as new when it is quiet.
var quietLimits = limits.Run{HistoryEvents: 60, Instances: 5, PartitionInstances: 4}

// executionsOf returns Temporal's IDs of the executions of a run.
func executionsOf(h *workertest.Handle) []string {
	var ids []string
	id := ""
	for {
		first := h.History(id)[0].GetWorkflowExecutionStartedEventAttributes()
		ids = append(ids, first.GetOriginalExecutionRunId())
		if id = first.GetContinuedExecutionRunId(); id == "" {
			return ids
		}
	}
}

// terminate closes a workflow from outside.
func terminate(h *workertest.Handle) {
	h.T.Helper()
	if err := h.Conn.TerminateWorkflow(h.T.Context(), h.ID, "", "test"); err != nil {
		h.T.Fatal(err)
	}
}

func describeRun(h *workertest.Handle) *workflowservice.DescribeWorkflowExecutionResponse {
	h.T.Helper()
	return workertest.Describe(h.T, h.Conn, h.ID, "")
}

// detachLimits returns limits that make a small run detach its attempts repeatedly. Each time, nodes have a sixth of the lease
// to do that.
func detachLimits() limits.Run {
	return limits.Run{HardHistoryEvents: 60, DetachWait: 10 * time.Millisecond, DetachedLease: workertest.Limit}
}

// chainBeside returns a chain of short tasks with the given long ones beside it.
func chainBeside(n int, beside map[string]*v1.TaskDefinition) *v1.Definition {
	def := &v1.Definition{Name: "detach", Tasks: beside}
	for i := range n {
		name := fmt.Sprintf("t%02d", i)
		def.Tasks[name] = workertest.ShellTask()
		if i > 0 {
			def.Tasks[name] = workertest.ShellTask(fmt.Sprintf("t%02d", i-1))
		}
	}
	return def
}
