package view

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/proto/prototest"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// A task that is carried to the next execution is the same there, field by field.
func TestCarriedTaskForgetsNoField(t *testing.T) {
	t.Parallel()
	carried := &historyv1.TaskState{}
	prototest.Fill(carried)
	task := carried.Task
	task.State, task.Reason, task.Error = v1.TaskQueued, "exit_code", "exit code 1"
	task.Count, task.Counts = nil, nil // instances are carried separately
	b := newTestStatus(t, 1)
	rec := dag.RecordOf(carried)
	rec.PendingEnd = false
	*b.core = *dag.Restore(b.graph, []dag.Record{rec})
	b.records.Restore(0, carried, false)
	b.Restore(0, carried)
	again := save(b).GetTasks()["t0"]
	// The exceptions come from the definition, from the gateway or from the instances. A run with silent nodes does not
	// continue as new.
	if missing := prototest.Missing(again.GetTask(), "type", "depends_on", "held", "count", "counts", "instances", "created_at", "dead_lettered_at", "notice", "name", "workload", "lease_until", "finally"); len(missing) > 0 {
		t.Errorf("the task has no %v", missing)
	}
	// The exceptions are those that the run adds for fan-outs, attempts, approvals and child runs, and those of an ended task.
	if missing := prototest.Missing(again, "items", "partitions", "previous_partitions", "requeued", "partial", "duration_estimate", "detached_attempt", "child_first", "pending_end", "approvals", "approval_until", "approval_reminder"); len(missing) > 0 {
		t.Errorf("its state has no %v", missing)
	}
	kept := proto.CloneOf(again.GetTask())
	kept.Result = task.GetResult() // the record holds the rest
	for _, clear := range []*v1.Task{task, kept} {
		clear.Type, clear.DependsOn, clear.Held, clear.Instances, clear.CreatedAt, clear.DeadLetteredAt, clear.Notice = "", nil, false, nil, nil, nil, ""
		clear.Name, clear.Workload, clear.LeaseUntil, clear.Finally = nil, nil, nil, false
	}
	if !proto.Equal(task, kept) {
		t.Errorf("%v\nbecomes\n%v", task, kept)
	}
}
