package run

import (
	"cmp"
	"errors"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/core/child"
	"switchyard/workflows/core/dataflow"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
	"switchyard/workflows/phrase"
	"switchyard/workflows/visibility"
)

const (
	// childTaskTimeout is the time after which a workflow task of a child moves to another worker process.
	childTaskTimeout = 6 * time.Second
	// parentCheck is the age at which a child starts to wait for the end of its parent.
	parentCheck = 5 * time.Second
)

// carryOutChild carries out effects of the child workflows, in order.
func (r *run) carryOutChild(effects []child.Effect) {
	for _, effect := range effects {
		switch e := effect.(type) {
		case child.Wake:
			r.wake()
		case child.Prepare:
			r.calls.Must("prepare child workflows", names.PrepareActivity, func(f workflow.Future) {
				var res historyv1.PrepareResponse
				failure := ""
				if err := f.Get(r.ctx, &res); err != nil {
					failure = err.Error()
				}
				r.carryOutChild(r.children.Prepared(e.Children, &res, failure))
			}, e.Request)
		case child.Start:
			r.startChild(e)
		case child.Cancel:
			r.calls.Watch(r.calls.Signal(e.ID, names.CancelSignal, &historyv1.RunCommand{Reason: e.Why, Now: e.Now}, len(e.Why)), func(f workflow.Future) {
				if err := f.Get(r.ctx, nil); err != nil {
					workflow.GetLogger(r.ctx).Debug("could not cancel a child workflow", "child", e.ID, "error", err)
				}
			})
		case child.Await:
			r.awaitRuns(e.Request)
		case child.Refused:
			if u := e.Owner.Unit; u != nil {
				r.fly(r.flight.RunRefused(u, e.Why))
			} else {
				r.spread(r.fanOuts.Lost(e.Owner.Partition, e.Why))
			}
		case child.Opened:
			if u := e.Owner.Unit; u != nil {
				r.fly(r.flight.RunOpened(u, e.First))
			} else {
				r.spread(r.fanOuts.Opened(e.Owner.Partition, e.First))
			}
		case child.Over:
			switch u := e.Owner.Unit; {
			case u != nil:
				r.fly(r.flight.RunOver(u, e.End))
			case e.End == nil:
				r.spread(r.fanOuts.Unopened(e.Owner.Partition))
			default:
				text := phrase.Because(cmp.Or(e.End.GetStatus(), v1.TaskFailed), e.End.GetError())
				r.spread(r.fanOuts.Lost(e.Owner.Partition, "its workflow has ended: "+text))
			}
		case child.ParentEnded:
			r.loseRun()
		}
	}
}

// startChild starts a prepared child and waits for its end.
func (r *run) startChild(start child.Start) {
	c, prepared := start.Child, start.Prepared
	workflowType := names.FanOutWorkflow
	options := workflow.ChildWorkflowOptions{
		WorkflowID: c.ID, TaskQueue: names.ControlQueue, WorkflowTaskTimeout: childTaskTimeout,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE, StaticSummary: c.Summary,
	}
	if u := c.Unit; u != nil {
		now := r.now()
		r.fly(r.flight.RunStarted(u, c.ID, now))
		attributes := visibility.StartedBy(r.RunID, prepared.GetWorkflow(), now)
		attributes.AddOrigin(r.commands.SubmittedBy, r.Input.GetBatch())
		workflowType, options.TypedSearchAttributes = names.RunWorkflow, attributes.Typed()
		options.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
		options.StaticSummary = prepared.GetWorkflow() + " for " + r.core.Name(u.Lead) + " of " + r.RunID
	} else {
		r.fanOuts.Prepared(c.Partition, c.ID)
	}
	r.calls.Charge(calls.ChildCharge)
	future := workflow.ExecuteChildWorkflow(workflow.WithChildOptions(r.ctx, options), workflowType, prepared.GetInput())
	r.calls.Watch(future.GetChildWorkflowExecution(), func(f workflow.Future) {
		var execution workflow.Execution
		if f.Get(r.ctx, &execution) == nil {
			r.carryOutChild(r.children.Opened(c, execution.RunID))
		}
	})
	r.calls.Watch(future, func(f workflow.Future) {
		var kept historyv1.StatusResponse
		err := f.Get(r.ctx, &kept)
		if _, there := errors.AsType[*temporal.ChildWorkflowExecutionAlreadyStartedError](err); there {
			r.carryOutChild(r.children.AlreadyStarted(start))
			return
		}
		r.carryOutChild(r.children.Ended(c, childEnd(&kept, err)))
	})
}

// awaitRuns waits for the ends of workflows that this execution did not start, and no longer for those before.
func (r *run) awaitRuns(req *historyv1.AwaitRunsRequest) {
	if r.awaiting != nil {
		r.awaiting()
		r.awaiting = nil
	}
	if req == nil {
		return
	}
	ctx, cancel := workflow.WithCancel(r.ctx)
	r.awaiting = cancel
	future := r.calls.ActivityWith(ctx, options.AwaitRuns(len(req.GetRuns())), names.AwaitRunsActivity, req, dataflow.MemberCharge*len(req.GetRuns()))
	r.calls.Watch(future, func(f workflow.Future) {
		if ctx.Err() != nil {
			return // a newer call has replaced it
		}
		r.awaiting = nil
		var res historyv1.AwaitRunsResponse
		if err := f.Get(r.ctx, &res); err != nil {
			workflow.GetLogger(r.ctx).Warn("could not await the ends of child workflows", "error", err)
		}
		r.carryOutChild(r.children.AwaitEnded(res.GetEnds()))
	})
}

// watchParent cancels this workflow when its parent has ended.
func (r *run) watchParent() {
	info := workflow.GetInfo(r.root)
	parent := info.ParentWorkflowExecution
	if r.Input.GetParentFirst() == "" || parent == nil {
		return
	}
	r.calls.After(parentCheck, "look for the run "+parent.ID, func() {
		self := &historyv1.AwaitingChild{WorkflowId: r.Self, First: info.FirstRunID, Starter: parent.RunID}
		r.carryOutChild(r.children.AwaitParent(parent.ID, r.Input.GetParentFirst(), self, r.now()))
	})
}

// childEnd translates the result of a child workflow to the end of its run.
func childEnd(kept *historyv1.StatusResponse, err error) *historyv1.RunEnd {
	if err == nil {
		return &historyv1.RunEnd{Status: v1.RunEndCompleted, Generation: kept.GetRun().GetGeneration(), Chain: kept.GetChain()}
	}
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		end := &historyv1.RunEnd{Status: v1.RunEndFailed, Error: app.Message()}
		if app.Details(kept) == nil {
			end.FinalReason = kept.GetFinalReason()
			if kept.GetRun().GetState() == v1.RunRejected {
				end.State, end.Error = v1.RunRejected, kept.GetRun().GetError()
			}
		}
		return end
	}
	if temporal.IsCanceledError(err) {
		return &historyv1.RunEnd{Status: v1.RunEndCancelled}
	}
	if _, terminated := errors.AsType[*temporal.TerminatedError](err); terminated {
		return &historyv1.RunEnd{Status: v1.RunEndTerminated}
	}
	return &historyv1.RunEnd{Error: err.Error()}
}
