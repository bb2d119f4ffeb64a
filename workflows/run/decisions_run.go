package run

import (
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/phrase"
)

// newRunDecisionHandler returns the update handler for a decision about the run itself.
func (de *decisions) newRunDecisionHandler(name, description, verdict string) updateHandler {
	validate := func(c *historyv1.RunCommand) error { return refusal(de.commands.checks().MayDecideRun(c)) }
	return newUpdateHandler(de.execution, name, description, validate, func(ctx workflow.Context, c *historyv1.RunCommand) error {
		if err := de.signed(ctx, c.GetDecision(), "", verdict, c.GetBy()); err != nil {
			return err
		}
		return de.commands.perform(ctx, func() error {
			err := validate(c)
			if err == nil {
				de.decide(verdict, c)
			}
			return err
		})
	})
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
