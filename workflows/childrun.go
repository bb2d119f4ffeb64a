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

// A child run is a child workflow that outlives the execution which has started it,
// because that one may go on in another: the next one awaits the child by its id.
// Temporal does not cancel it then when its parent is terminated, so that the child
// looks for its parent itself.

const (
	// childTaskTimeout is after which time a step of a child run goes to another
	// process, as one of a run that was submitted.
	childTaskTimeout = 6 * time.Second
	// parentCheck is how old a child run is when it begins to look for its parent.
	parentCheck = 5 * time.Second
)

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
	first     string // execution of the run; empty: it has not begun
	cancel    func()
	stopped   bool // it is not wanted any more
	ended     bool
}

// canLeave says whether the next execution of this run can go on with the child.
func (c *child) canLeave() bool { return c.first != "" && !c.stopped && !c.ended }

// leavesChildren says whether the next execution can go on with all children that
// have not ended.
func (r *run) leavesChildren() bool {
	//workflowcheck:ignore (whether all can does not depend on the order)
	for _, c := range r.children {
		if !c.canLeave() {
			return false
		}
	}
	return true
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
			r.endChild(c, unprepared(err), nil)
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
	start.Input.ParentFirst = workflow.GetInfo(r.root).FirstRunID
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            c.id,
		TaskQueue:             names.ControlQueue,
		WorkflowTaskTimeout:   childTaskTimeout,
		WaitForCancellation:   true,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		Memo: map[string]any{
			names.NameMemo:      start.GetWorkflow(),
			names.SubmittedMemo: now.UTC().Format(time.RFC3339Nano),
		},
		StaticSummary: start.GetWorkflow() + " for " + r.core.Name(i) + " of " + r.id,
	})
	future := workflow.ExecuteChildWorkflow(ctx, names.RunWorkflow, start.GetInput())
	claim := c.unit.claim
	r.fly(future.GetChildWorkflowExecution(), func(f workflow.Future) {
		var execution workflow.Execution
		if f.Get(r.ctx, &execution) == nil {
			c.first = execution.RunID
			r.events = append(r.events, dag.Running{Task: i, Claim: claim})
		}
	})
	r.fly(future, func(f workflow.Future) {
		var kept v1.StatusResponse
		err := f.Get(r.ctx, &kept)
		r.childLanded(c, endOfChild(&kept, err))
	})
}

// restoreChild goes on with the run of a task that the execution before has started.
func (r *run) restoreChild(i int, t *v1.TaskCarry) {
	u := &unit{lead: i, members: []int{i}, claim: r.core.Task(i).Claim, lock: lockOf(r.core.Definition(i))}
	r.adopt(u)
	r.ready(i, workflow.Now(r.ctx))
	c := &child{unit: u, id: t.GetTask().GetChildRun(), first: t.GetChildFirst(), startedAt: t.GetTask().GetStartedAt().AsTime()}
	c.cancel = func() {
		r.fly(workflow.RequestCancelExternalWorkflow(r.ctx, c.id, ""), func(f workflow.Future) {
			if err := f.Get(r.ctx, nil); err != nil {
				workflow.GetLogger(r.ctx).Debug("a child run was not cancelled", "child", c.id, "error", err)
			}
		})
	}
	r.children[i] = c
	r.awaitRun(c.id, c.first, func(end *v1.RunEnd) { r.childLanded(c, end) })
}

// awaitRun waits for the end of a run that is no child of this execution.
func (r *run) awaitRun(id, first string, land func(*v1.RunEnd)) {
	ctx := workflow.WithActivityOptions(r.ctx, awaitRunOptions(id))
	future := workflow.ExecuteActivity(ctx, names.AwaitRunActivity, &v1.AwaitRunRequest{WorkflowId: id, First: first})
	r.fly(future, func(f workflow.Future) {
		var end v1.RunEnd
		switch err := f.Get(r.ctx, &end); {
		case err != nil:
			land(&v1.RunEnd{Error: err.Error()})
		case end.GetOpen():
			r.awaitRun(id, first, land)
		default:
			land(&end)
		}
	})
}

// watchParent has the run cancelled when the one that has started it is no more.
func (r *run) watchParent() {
	parent := workflow.GetInfo(r.root).ParentWorkflowExecution
	if r.in.GetParentFirst() == "" || parent == nil {
		return
	}
	r.after(parentCheck, "look for the run "+parent.ID, func() {
		r.awaitRun(parent.ID, r.in.GetParentFirst(), func(*v1.RunEnd) { r.cancel() })
	})
}

// stopChild has the run of a task cancelled. It tells whether there is one.
func (r *run) stopChild(i int) bool {
	c := r.children[i]
	if c != nil && !c.stopped {
		c.stopped = true
		c.cancel()
	}
	return c != nil
}

// endOfChild is how a child run has ended whose workflow has returned so.
func endOfChild(kept *v1.StatusResponse, err error) *v1.RunEnd {
	if err == nil {
		return &v1.RunEnd{Status: "completed", Generation: kept.GetRun().GetGeneration()}
	}
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		end := &v1.RunEnd{Status: "failed", Error: app.Message()}
		if app.Details(kept) == nil && kept.GetRun().GetState() == runRejected {
			end.State, end.Error = runRejected, kept.GetRun().GetError()
		}
		return end
	}
	if temporal.IsCanceledError(err) {
		return &v1.RunEnd{Status: "cancelled"}
	}
	if _, terminated := errors.AsType[*temporal.TerminatedError](err); terminated {
		return &v1.RunEnd{Status: "terminated"}
	}
	return &v1.RunEnd{Error: err.Error()}
}

// childLanded ends a task as its run has ended.
func (r *run) childLanded(c *child, end *v1.RunEnd) {
	c.ended = true
	if end.GetStatus() != "completed" {
		ended := childFailure(c.id, end)
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
		Child: c.id, ChildGeneration: end.GetGeneration(),
		RunId: r.id, Generation: r.in.GetGeneration(), Task: r.core.Name(i), Attempt: r.core.Task(i).Attempt,
		InlineLimit: int32(min(maxInlineResult, maxInlineTotal/r.core.Len())),
	}), func(f workflow.Future) {
		var res v1.ExecuteResponse
		if err := f.Get(r.ctx, &res); err != nil {
			r.endChild(c, childFailure(c.id, &v1.RunEnd{Error: err.Error()}), nil)
			return
		}
		r.endChild(c, dag.Ended{State: dag.StateCompleted}, &res)
	})
}

// endChild ends a task of type run. Without an answer there was no run, or one that did not complete.
func (r *run) endChild(c *child, ended dag.Ended, res *v1.ExecuteResponse) {
	i, now := c.unit.lead, workflow.Now(r.ctx)
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

// unprepared is how a task ends whose run could not be made ready.
func unprepared(err error) dag.Ended {
	ended := dag.Ended{State: dag.StateFailed, Reason: dag.ReasonSystem, Error: "the run could not be started: " + err.Error()}
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		ended.Error = app.Message()
		if app.Type() == names.ChildRunError {
			ended.Reason, ended.NoRetry = reasonChildRun, true
		}
	}
	return ended
}

// childFailure is how a task ends whose run did not complete.
func childFailure(id string, end *v1.RunEnd) dag.Ended {
	failed := func(reason, text string) dag.Ended {
		return dag.Ended{State: dag.StateFailed, Reason: reason, Error: "run " + id + " " + text}
	}
	switch {
	case end.GetState() == runRejected:
		return failed(reasonRejected, "was rejected: "+end.GetError())
	case end.GetStatus() == "failed":
		return failed(reasonChildRun, "failed: "+end.GetError())
	case end.GetStatus() == "cancelled":
		ended := failed("cancelled", "was cancelled")
		ended.State, ended.NoRetry = dag.StateCancelled, true
		return ended
	case end.GetStatus() == "terminated":
		ended := failed(reasonChildRun, "was terminated")
		ended.NoRetry = true
		return ended
	default:
		return failed(dag.ReasonSystem, "could not be carried out: "+end.GetError())
	}
}
