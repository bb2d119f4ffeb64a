package workflows

import (
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/proto/prototest"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
)

// A task that is carried to the next execution is the same there, field by field.
func TestCarriedTaskForgetsNoField(t *testing.T) {
	t.Parallel()
	carried := &v1.TaskCarry{}
	prototest.Fill(carried)
	task := carried.Task
	task.State, task.Reason, task.Error = dag.StateFailed, "exit_code", "exit code 1"
	task.Count, task.Counts = nil, nil // instances are carried by themselves
	b := newTestBoard(t, 1)
	b.restore(0, carried, false)
	rec := recordOf(carried)
	rec.Doomed = false
	again := b.carryTask(0, rec)
	// What the definition has, the gateway adds, or the instances have by themselves.
	if missing := prototest.Missing(again.GetTask(), "type", "depends_on", "held", "count", "counts", "instances", "created_at", "dead_lettered_at"); len(missing) > 0 {
		t.Errorf("the task has no %v", missing)
	}
	// What the run adds for fan-outs, attempts and child runs, and for a task that has ended.
	if missing := prototest.Missing(again, "items", "expanded_at", "parts", "parts_before", "put_back", "partial", "pace", "handed_over", "child_first", "doom"); len(missing) > 0 {
		t.Errorf("its state has no %v", missing)
	}
	kept := proto.CloneOf(again.GetTask())
	kept.Result = task.GetResult() // the record has the rest
	for _, clear := range []*v1.Task{task, kept} {
		clear.Type, clear.DependsOn, clear.Held, clear.Instances, clear.CreatedAt, clear.DeadLetteredAt = "", nil, false, nil, nil, nil
		clear.QueuedAt.Nanos = 0
	}
	if !proto.Equal(task, kept) {
		t.Errorf("%v\nbecomes\n%v", task, kept)
	}
}

// The next execution is given every field of the input of this one, but for what only the first is told: which
// instances or tasks are done again, and of which stored workflow. A stored input is named, and not repeated.
func TestNextInputForgetsNoField(t *testing.T) {
	t.Parallel()
	received := &v1.RunInput{}
	prototest.Fill(received)
	r := &run{in: received, received: received, chain: "chain"}
	next := r.nextInput(&v1.RunCarry{Cancelled: true})
	if missing := prototest.Missing(next, "retry", "again", "workflow", "stored"); len(missing) > 0 {
		t.Errorf("the input has no %v", missing)
	}
}
