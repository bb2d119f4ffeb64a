package run

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

// awaitsApproval reports whether the run may not start before an operator has approved it.
func (r *run) awaitsApproval() bool {
	return r.status.Run.GetApproval().GetState() == v1.ApprovalPending
}

// awaitApproval waits until the run is approved, if it needs an approval. It returns the events that occurred meanwhile, and
// whether they end the run. An approval holds for all generations; a rejection does not.
func (r *run) awaitApproval() (early []dag.Event, over bool) {
	if !r.in.GetNeedsApproval() || r.in.GetPartition() != nil || r.status.Run.GetApproval().GetState() == v1.ApprovalApproved {
		return nil, false
	}
	r.status.Run.Approval = &v1.RunApproval{State: v1.ApprovalPending}
	r.showState()
	r.log.Add(workflow.Now(r.ctx), v1.EventPaused, eventlog.WholeRun, "", 0, 0, "waits for the approval of an operator", eventlog.KeyReason.Of(v1.ReasonApproval))
	for r.awaitsApproval() {
		// The only error is a cancelled context, and ctx is never cancelled.
		_ = workflow.Await(r.ctx, r.hasNews)
		r.gather()
		early, r.events = append(early, r.events...), nil
		if slices.ContainsFunc(early, endsRun) {
			return early, true
		}
	}
	r.showState()
	return early, false
}

// newRunDecisionHandler returns the update handler for a decision about the run itself.
func (r *run) newRunDecisionHandler(name, description, verdict string) updateHandler {
	may := func(c *v1.RunCommand) error { return r.mayDecide(c) }
	return newUpdateHandler(r, name, description, may, func(ctx workflow.Context, c *v1.RunCommand) error {
		if err := r.signed(ctx, c.GetDecision(), "", verdict, c.GetBy()); err != nil {
			return err
		}
		return r.perform(ctx, func() error {
			if err := r.mayDecide(c); err != nil {
				return err
			}
			r.decide(verdict, c)
			return nil
		})
	})
}

// mayDecide returns why the run cannot be approved or rejected, or nil if it can.
func (r *run) mayDecide(c *v1.RunCommand) error {
	approval := r.status.Run.GetApproval()
	switch {
	case approval.GetState() == v1.ApprovalPending:
	case approval != nil:
		return refuse(names.TaskStateError, fmt.Errorf("the run was %s by %s at %s", approval.GetState(), approval.GetBy(), approval.GetAt().AsTime().UTC().Format(time.RFC3339)))
	default:
		return refuse(names.TaskStateError, errors.New("the run does not wait for approval"))
	}
	if err := r.mayChange(); err != nil {
		return err
	}
	if by := c.GetDecision().GetBy(); by != "" && by == r.status.Run.GetSubmittedBy() {
		return refuse(names.TaskStateError, fmt.Errorf("%s has submitted the run, and another person decides about it", by))
	}
	return nil
}

// decide applies a person's decision about the run.
func (r *run) decide(verdict string, c *v1.RunCommand) {
	by, reason := c.GetBy(), c.GetReason()
	if d := c.GetDecision(); d != nil {
		by, reason = d.GetBy(), d.GetReason()
	}
	r.status.Run.Approval = &v1.RunApproval{State: verdict, By: by, At: timestamppb.New(workflow.Now(r.ctx)), Reason: reason}
	if verdict == v1.ApprovalApproved {
		r.logRun(v1.EventApproved, by, reason)
		r.wake()
		return
	}
	r.logRun(v1.EventRejected, by, reason)
	r.events = append(r.events, dag.Abort{State: v1.RunRejected, Reason: v1.ReasonRejected, Error: phrase.Because(phrase.By(v1.ApprovalRejected, by), reason)})
}
