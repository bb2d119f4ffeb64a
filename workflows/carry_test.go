package workflows

import (
	"testing"

	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/proto/prototest"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/admission"
	"switchyard/workflows/dag"
)

// A task that is carried to the next execution is the same there, field by field.
func TestCarriedTaskForgetsNoField(t *testing.T) {
	t.Parallel()
	carried := &v1.TaskCarry{}
	prototest.Fill(carried)
	task := carried.Task
	task.State, task.Reason, task.Error = v1.TaskFailed, "exit_code", "exit code 1"
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

// A run leaves everything to the next execution that it was left by the one before.
func TestCarryForgetsNoField(t *testing.T) {
	t.Parallel()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		carried := &v1.RunCarry{}
		prototest.Fill(carried)
		carried.Stored, carried.Packed, carried.Held, carried.FirstFailure = nil, nil, []string{"last"}, "last"
		carried.Tasks = map[string]*v1.TaskCarry{
			"each": {Task: &v1.Task{State: v1.TaskRunning, Count: proto.Int32(2)}},
			"last": {Task: &v1.Task{State: v1.TaskFailed}},
		}
		each := &v1.TaskDefinition{Type: "shell", Parallel: structpb.NewNumberValue(2)}
		def := &v1.Definition{Name: "part", Tasks: map[string]*v1.TaskDefinition{"each": each, "last": {Type: "shell"}}}
		r := newRun(ctx, nil, Limits{}.withDefaults())
		r.in = &v1.RunInput{Carry: carried, Definition: def, Part: &v1.Part{Task: "each", To: 2, Count: 2}}
		r.admission = admission.New(0)
		var err error
		if r.graph, err = dag.NewGraph(def, nil); err != nil {
			return err
		}
		if err := r.restore(carried); err != nil {
			return err
		}
		r.log = r.board.log
		again := r.carry()
		if missing := prototest.Missing(again, "tasks", "stored", "packed"); len(missing) > 0 {
			t.Errorf("the state has no %v", missing)
		}
		return nil
	})
	if err := env.GetWorkflowError(); err != nil {
		t.Error(err)
	}
}

// The next execution is given every field of the input of this one, but for what only the first is told: which
// instances or tasks are done again, and of which stored workflow. A stored input is named, and not repeated.
func TestNextInputForgetsNoField(t *testing.T) {
	t.Parallel()
	received := &v1.RunInput{}
	prototest.Fill(received)
	r := &run{in: received, received: received, chain: "chain"}
	received.Stored = ""
	next, err := r.nextInput()
	if err != nil {
		t.Fatal(err)
	}
	if missing := prototest.Missing(next, "retry", "again", "workflow", "stored", "carry"); len(missing) > 0 {
		t.Errorf("the input has no %v", missing)
	}
}
