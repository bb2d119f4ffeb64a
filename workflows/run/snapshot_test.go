package run

import (
	"testing"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/proto/prototest"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/limits"
)

// A run hands everything to the next execution that the previous one handed to it.
func TestStateForgetsNoField(t *testing.T) {
	t.Parallel()
	env := newTestEnvironment()
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		carried := &historyv1.RunState{}
		prototest.Fill(carried)
		carried.Stored, carried.Packed, carried.Held, carried.FirstFailure = nil, nil, []string{"last"}, "last"
		carried.HeldBy = map[string]string{"last": "by ann: not yet"}
		carried.Tasks = map[string]*historyv1.TaskState{
			"each": {Task: &v1.Task{State: v1.TaskRunning, Count: proto.Int32(2)}},
			"last": {Task: &v1.Task{State: v1.TaskFailed}},
		}
		each := &v1.TaskDefinition{Type: "shell", Parallel: structpb.NewNumberValue(2)}
		def := &v1.Definition{Name: "part", Tasks: map[string]*v1.TaskDefinition{"each": each, "last": {Type: "shell"}}}
		r := newRun(ctx, nil, limits.Run{}.WithDefaults())
		r.Input = &historyv1.RunInput{State: carried, Definition: def, Partition: &historyv1.Partition{Task: "each", To: 2, Count: 2}}
		var err error
		if r.graph, err = dag.NewGraph(def, nil); err != nil {
			return err
		}
		if err := r.restore(carried); err != nil {
			return err
		}
		r.waiting = carried.GetWaiting()
		r.commands.AddCarriedOut("update")
		again := r.snapshot()
		if missing := prototest.Missing(again, "tasks", "stored", "packed"); len(missing) > 0 {
			t.Errorf("the state has no %v", missing)
		}
		return nil
	})
	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
}

// The next execution gets every field of this execution's input, except for those that only the first execution needs: what is
// rerun, after which execution, and the name of the stored workflow. A stored input is referenced, not repeated.
func TestNextInputForgetsNoField(t *testing.T) {
	t.Parallel()
	received := &historyv1.RunInput{}
	prototest.Fill(received)
	received.Stored = ""
	next := nextInput(received, received, "chain")
	if missing := prototest.Missing(next, "retry", "rerun", "terminated", "workflow", "stored", "state"); len(missing) > 0 {
		t.Errorf("the input has no %v", missing)
	}
}
