package workflows

import (
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// Sizes of what an attempt may return in its result, and of an output that
// travels with a request; anything larger is read from the store by its record.
const (
	maxInlineResult = 24 << 10
	maxInlineTotal  = 16 << 20
	maxInlineOutput = 4 << 10
)

// dispatch starts the attempts whose tasks have been given a node. A task whose
// claim is no longer wanted gives its place back.
func (r *run) dispatch() {
	for len(r.assignments) > 0 && len(r.attempts) < r.limits.InFlight {
		a := r.assignments[0]
		r.assignments = r.assignments[1:]
		if t := r.core.Task(a.task); t.State != "assigned" || t.Claim != a.claim {
			r.release(a.task, a.claim, "")
			continue
		}
		req := r.executeRequest(a)
		if err := checkSize(req); err != nil {
			r.release(a.task, a.claim, "")
			r.events = append(r.events, dag.Ended{
				Task: a.task, Claim: a.claim, State: dag.StateFailed, Reason: "payload", Error: err.Error(), ExitCode: -1, NoRetry: true,
			})
			continue
		}
		if r.scheduled += proto.Size(req); r.scheduled > r.limits.ScheduleBytes {
			// The commands so far are sent before more are made.
			_ = workflow.Sleep(r.ctx, time.Millisecond) // ctx is never cancelled
			r.scheduled = proto.Size(req)
		}
		r.execute(a, req)
	}
}

// stop ends the attempts of tasks. Of those that have a node and were not started
// yet nothing will be, and that is their end.
func (r *run) stop(tasks []int) {
	unstarted := map[int]bool{}
	for _, i := range tasks {
		if a := r.attempts[i]; a != nil {
			a.cancel()
		} else {
			unstarted[i] = true
		}
	}
	if len(unstarted) == 0 {
		return
	}
	r.assignments = slices.DeleteFunc(r.assignments, func(a assignment) bool {
		if unstarted[a.task] {
			r.release(a.task, a.claim, "")
			r.events = append(r.events, dag.Ended{Task: a.task, Claim: a.claim, State: dag.StateCancelled, ExitCode: -1})
		}
		return unstarted[a.task]
	})
}

func (r *run) execute(a assignment, req *v1.ExecuteRequest) {
	ctx, cancel := workflow.WithCancel(r.ctx)
	priority := r.graph.Definition(a.task).GetPriority()
	ctx = workflow.WithActivityOptions(ctx, executeOptions(req, a.queue, priority, r.in.GetOptions().GetHeartbeatTimeout().AsDuration()))
	r.attempts[a.task] = &attempt{claim: a.claim, cancel: cancel}
	r.fly(workflow.ExecuteActivity(ctx, names.ExecuteActivity, req), func(f workflow.Future) {
		cancel()
		delete(r.attempts, a.task)
		end := r.landed(a, f)
		r.release(a.task, a.claim, end.outcome)
		r.board.attemptEnded(a.task, end, workflow.Now(r.ctx))
		r.events = append(r.events, end.ended)
	})
}

func (r *run) executeRequest(a assignment) *v1.ExecuteRequest {
	task := r.graph.Definition(a.task)
	req := &v1.ExecuteRequest{
		RunId:       r.id,
		Workflow:    r.in.GetDefinition().GetName(),
		Task:        r.graph.Name(a.task),
		Attempt:     r.core.Task(a.task).Attempt,
		Claim:       a.claim,
		Node:        a.node,
		Type:        task.GetType(),
		Spec:        task.GetSpec(),
		Env:         task.GetEnv(),
		Input:       task.GetInput(),
		Resources:   task.GetResources(),
		InlineLimit: int32(min(maxInlineResult, maxInlineTotal/r.graph.Len())),
		Generation:  r.in.GetGeneration(),
		Incarnation: a.incarnation,
		Gpus:        a.gpus,
		NumaNode:    a.numaNode,
		Unheard:     r.board.unheard(a.task),
	}
	if t := definition.Timeout(task); t > 0 {
		req.Timeout = durationpb.New(t)
	}
	for _, p := range r.graph.Parents(a.task) {
		if output := r.parentOutput(p); output != nil {
			req.Parents = append(req.Parents, output)
		}
	}
	return req
}

// parentOutput is what a task sees of a parent's output: the output itself when
// it is small, else where it is stored. Nil when there is none.
func (r *run) parentOutput(i int) *v1.ParentOutput {
	result, record := r.board.result(i)
	out := &v1.ParentOutput{Task: r.graph.Name(i)}
	switch output := result.GetOutput(); {
	case record != "":
		out.Record = record
	case len(output.GetFields()) == 0:
		return nil
	default:
		out.Output = output
	}
	return out
}

func attemptSummary(req *v1.ExecuteRequest) string {
	if req.GetAttempt() == 0 {
		return fmt.Sprintf("%s on %s", req.GetTask(), req.GetNode())
	}
	return fmt.Sprintf("%s on %s, attempt %d", req.GetTask(), req.GetNode(), req.GetAttempt())
}

// wholeInput is the input of the run, never nil.
func (r *run) wholeInput() *structpb.Struct { return cloneStruct(r.in.GetInput()) }
