package run

import (
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

// newRunDecisionHandler returns the update handler for a decision about the run itself.
func (de *decisions) newRunDecisionHandler(name, description, verdict string) updateHandler {
	may := func(c *historyv1.RunCommand) error { return de.mayDecide(c) }
	return newUpdateHandler(de.execution, name, description, may, func(ctx workflow.Context, c *historyv1.RunCommand) error {
		if err := de.signed(ctx, c.GetDecision(), "", verdict, c.GetBy()); err != nil {
			return err
		}
		return de.commands.perform(ctx, func() error {
			if err := de.mayDecide(c); err != nil {
				return err
			}
			de.decide(verdict, c)
			return nil
		})
	})
}

// mayDecide returns why the run cannot be approved or rejected, or nil if it can.
func (de *decisions) mayDecide(c *historyv1.RunCommand) error {
	approval := de.approval
	switch {
	case de.awaitsApproval():
	case approval != nil:
		return refuse(names.TaskStateError, fmt.Errorf("the run was %s by %s at %s", approval.GetState(), approval.GetBy(), approval.GetAt().AsTime().UTC().Format(time.RFC3339)))
	default:
		return refuse(names.TaskStateError, errors.New("the run is not waiting for approval"))
	}
	if err := de.commands.mayChange(); err != nil {
		return err
	}
	if by := c.GetDecision().GetBy(); by != "" && by == de.submittedBy {
		return refuse(names.NotAllowedError, fmt.Errorf("%s submitted the run; another person must approve or reject it", by))
	}
	return nil
}

// decide applies a person's decision about the run.
func (de *decisions) decide(verdict string, c *historyv1.RunCommand) {
	by, reason := c.GetBy(), c.GetReason()
	if d := c.GetDecision(); d != nil {
		by, reason = d.GetBy(), d.GetReason()
	}
	de.setApproval(&v1.RunApproval{
		State: verdict, By: by, At: timestamppb.New(de.now()), Reason: reason, DefinitionVersion: de.in.GetDefinitionVersion(),
	})
	if verdict == v1.ApprovalApproved {
		de.logRun(v1.EventApproved, by, reason)
		de.wake()
		return
	}
	de.raise(dag.Abort{State: v1.RunRejected, Reason: v1.ReasonRejected, Error: phrase.Because(phrase.By(v1.ApprovalRejected, by), reason)})
}
