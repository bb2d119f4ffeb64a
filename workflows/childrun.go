package workflows

import (
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/definition"
	"switchyard/workflows/names"
)

// childTaskTimeout is after which time a step of a child run goes to another
// process, as one of a run that was submitted.
const childTaskTimeout = 6 * time.Second

// Reasons of a task of type run that has failed.
const (
	reasonChildRun = "child_run" // its run did not complete
	reasonRejected = "rejected"  // its run was rejected
)

// child is the run of a task of type run. It is there from when the task has its
// turn, before there is a run.
type child struct {
	unit      *unit
	id        string // of the run; empty: it is not known yet
	startedAt time.Time
	cancel    workflow.CancelFunc
	stopped   bool // it is not wanted any more
}

// startChild starts the run of a task, when the expressions in its spec have been replaced.
func (r *run) startChild(u *unit) {
	if definition.HasTemplates(r.core.Definition(u.lead)) {
		r.ask(question{task: u.lead, kind: asksTemplate, claim: u.claim})
		return
	}
	r.prepareChild(u, r.core.Definition(u.lead).GetSpec())
}

// prepareChild has the run made ready that a task is to start. A definition in the
// spec has expressions of its own, which are the child's.
func (r *run) prepareChild(u *unit, rendered *structpb.Struct) {
	spec := cloneStruct(rendered)
	if inline := r.core.Definition(u.lead).GetSpec().GetFields()["definition"]; inline != nil {
		spec.Fields["definition"] = inline
	}
	ctx, cancel := workflow.WithCancel(r.ctx)
	c := &child{unit: u, cancel: cancel}
	r.children[u.lead] = c
	r.board.place(u.lead, "", -1)
	r.events = append(r.events, dag.Placed{Task: u.lead, Claim: u.claim})
	local := workflow.WithLocalActivityOptions(r.ctx, localOptions("prepare the run of "+r.core.Name(u.lead)))
	r.fly(workflow.ExecuteLocalActivity(local, names.ChildRunActivity, &v1.ChildRunRequest{
		RunId: r.id, Generation: r.in.GetGeneration(), Task: r.core.Name(u.lead), Claim: u.claim,
		Spec: spec, Options: r.in.GetOptions(), Depth: r.in.GetDepth() + 1,
	}), func(f workflow.Future) {
		var res v1.ChildRunResponse
		switch err := f.Get(r.ctx, &res); {
		case c.stopped:
			r.endChild(c, dag.Ended{State: dag.StateCancelled, NoRetry: true}, nil)
		case err != nil:
			r.endChild(c, childFailure("", err), nil)
		default:
			r.openChild(ctx, c, &res)
		}
	})
}

// openChild starts the run.
func (r *run) openChild(ctx workflow.Context, c *child, start *v1.ChildRunResponse) {
	i, now := c.unit.lead, workflow.Now(r.ctx)
	c.id, c.startedAt = start.GetId(), now
	r.board.rare(i).childRun = c.id
	r.board.touch(i)
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            c.id,
		TaskQueue:             names.ControlQueue,
		WorkflowTaskTimeout:   childTaskTimeout,
		WaitForCancellation:   true,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_REQUEST_CANCEL,
		Memo: map[string]any{
			names.NameMemo:      start.GetWorkflow(),
			names.SubmittedMemo: now.UTC().Format(time.RFC3339Nano),
		},
		StaticSummary: start.GetWorkflow() + " for " + r.core.Name(i) + " of " + r.id,
	})
	future := workflow.ExecuteChildWorkflow(ctx, names.RunWorkflow, start.GetInput())
	claim := c.unit.claim
	r.fly(future.GetChildWorkflowExecution(), func(f workflow.Future) {
		if f.Get(r.ctx, nil) == nil {
			r.events = append(r.events, dag.Running{Task: i, Claim: claim})
		}
	})
	r.fly(future, func(f workflow.Future) { r.childLanded(c, f) })
}

// stopChild has the run of a task cancelled. It tells whether there is one.
func (r *run) stopChild(i int) bool {
	c := r.children[i]
	if c != nil {
		c.stopped = true
		c.cancel()
	}
	return c != nil
}

// childLanded ends a task as its run has ended.
func (r *run) childLanded(c *child, f workflow.Future) {
	var kept v1.StatusResponse
	if err := f.Get(r.ctx, &kept); err != nil {
		ended := childFailure(c.id, err)
		switch {
		case c.stopped && ended.State == dag.StateCancelled:
		case ended.State == dag.StateCancelled: // by a person, who would not want it again
			ended.State, ended.Reason, ended.NoRetry = dag.StateFailed, reasonChildRun, true
		}
		r.endChild(c, ended, nil)
		return
	}
	i := c.unit.lead
	local := workflow.WithLocalActivityOptions(r.ctx, localOptions("take over what "+c.id+" has left"))
	r.fly(workflow.ExecuteLocalActivity(local, names.ChildRunEndActivity, &v1.ChildRunEndRequest{
		Child: c.id, ChildGeneration: kept.GetRun().GetGeneration(),
		RunId: r.id, Generation: r.in.GetGeneration(), Task: r.core.Name(i), Attempt: r.core.Task(i).Attempt,
		InlineLimit: int32(min(maxInlineResult, maxInlineTotal/r.core.Len())),
	}), func(f workflow.Future) {
		var res v1.ExecuteResponse
		if err := f.Get(r.ctx, &res); err != nil {
			r.endChild(c, childFailure(c.id, err), nil)
			return
		}
		r.endChild(c, dag.Ended{State: dag.StateCompleted}, &res)
	})
}

// endChild ends a task of type run. Without an answer there was no run, or one that did not complete.
func (r *run) endChild(c *child, ended dag.Ended, res *v1.ExecuteResponse) {
	i, now := c.unit.lead, workflow.Now(r.ctx)
	c.cancel()
	delete(r.children, i)
	r.leave(c.unit)
	d := r.newEnd(assignment{task: i, claim: c.unit.claim})
	ended.Task, ended.Claim, ended.ExitCode = d.ended.Task, d.ended.Claim, -1
	if c.id != "" {
		ended.ExitCode = 1
	}
	if res != nil {
		d.res, ended.ExitCode = res, 0
	} else if !c.startedAt.IsZero() {
		d.res.StartedAt = timestamppb.New(c.startedAt)
		d.res.Result = &v1.TaskResult{ExitCode: ended.ExitCode, Output: &structpb.Struct{}}
	}
	d.ended, d.outcome = ended, outcomeDone
	d.res.AssignedAt = r.board.entries[i].assignedAt
	r.ended(d, now)
}

// childFailure is how a task ends whose run did not complete, or could not be started.
func childFailure(id string, err error) dag.Ended {
	failed := func(reason, text string, noRetry bool) dag.Ended {
		if id != "" {
			text = "run " + id + " " + text
		}
		return dag.Ended{State: dag.StateFailed, Reason: reason, Error: text, NoRetry: noRetry}
	}
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		if app.Type() == names.ChildRunError {
			return dag.Ended{State: dag.StateFailed, Reason: reasonChildRun, Error: app.Message(), NoRetry: true}
		}
		if id == "" {
			return dag.Ended{State: dag.StateFailed, Reason: dag.ReasonSystem, Error: app.Message()}
		}
		var status v1.StatusResponse
		if app.Details(&status) == nil && status.GetRun().GetState() == runRejected {
			return failed(reasonRejected, "was rejected: "+status.GetRun().GetError(), false)
		}
		return failed(reasonChildRun, "failed: "+app.Message(), false)
	}
	if temporal.IsCanceledError(err) {
		ended := failed("cancelled", "was cancelled", true)
		ended.State = dag.StateCancelled
		return ended
	}
	if _, terminated := errors.AsType[*temporal.TerminatedError](err); terminated {
		return failed(reasonChildRun, "was terminated", true)
	}
	return failed(dag.ReasonSystem, "could not be carried out: "+err.Error(), false)
}
