package run

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/core/command"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
)

// decisions lets people approve or reject the run and its tasks. Where people log in, it counts only signed decisions.
type decisions struct {
	*execution
	commands decisionCommands
}

// The decisions use these parts of other components.
type (
	decisionCommands interface {
		perform(ctx workflow.Context, do func() error) error
		awaitBegin(ctx workflow.Context) error
		refused() error
		checks() command.Checks
		logRefused(task, verdict string, claimed, why string)
	}
)

// signed returns an error if a decision does not count. Where people log in, only a decision counts that a gateway has signed
// for this task of this execution. Each refused decision is logged as an event of the run. For a decision about the run itself,
// task is "".
func (de *decisions) signed(ctx workflow.Context, d *historyv1.Decision, task, verdict, claimed string) error {
	// The run's input states whether people log in.
	if err := de.commands.awaitBegin(ctx); err != nil {
		return err
	}
	if de.commands.refused() != nil || !de.in.GetSignedDecisions() {
		return nil // if the run refuses commands, the command itself gets that answer
	}
	why := de.misdirected(d, task, verdict)
	if why == "" {
		var res historyv1.VerifyResponse
		verifying := workflow.WithLocalActivityOptions(ctx, options.Must("verify who has decided", 0))
		if err := workflow.ExecuteLocalActivity(verifying, names.VerifyDecisionActivity, &historyv1.VerifyRequest{Decision: d}).Get(ctx, &res); err != nil {
			return refuse(names.TaskStateError, errors.New("the signature of the decision cannot be verified now; try again: "+calls.CauseOf(err)))
		}
		why = res.GetRefused()
	}
	if why == "" {
		return nil
	}
	return de.commands.perform(ctx, func() error {
		de.commands.logRefused(task, verdict, claimed, why)
		return refuse(names.TaskStateError, fmt.Errorf("the decision is not valid: %s", why))
	})
}

// misdirected returns why a decision is not meant for this task of this execution, or "" if it is.
func (de *decisions) misdirected(d *historyv1.Decision, task, verdict string) string {
	switch {
	case d == nil:
		return "it was not sent through a gateway; use `switchyard runs approve` or `reject`"
	case d.GetWorkflow() != de.self || d.GetTask() != task:
		return "it was signed for another task or run"
	case d.GetExecution() != de.first:
		return "it was signed for another generation of the run"
	case d.GetVerdict() != verdict:
		return "it was signed as " + d.GetVerdict()
	}
	return ""
}

// newDecisionHandler returns the update handler for a decision about a task.
func (de *decisions) newDecisionHandler(name, description, verdict string, may mayTask) updateHandler {
	validate := func(c *historyv1.TaskCommand) error {
		_, refused := de.commands.checks().Target(decided(c), may)
		return refusal(refused)
	}
	return newUpdateHandler(de.execution, name, description, validate, func(ctx workflow.Context, c *historyv1.TaskCommand) error {
		if err := de.signed(ctx, c.GetDecision(), c.GetTask(), verdict, c.GetBy()); err != nil {
			return err
		}
		return de.commands.perform(ctx, func() error {
			c := decided(c)
			i, refused := de.commands.checks().Target(c, may)
			switch {
			case refused != nil:
			case verdict == v1.ApprovalApproved:
				de.fly(de.flight.Approve(i, c, de.now()))
			default:
				de.fly(de.flight.Reject(i, c, de.now()))
			}
			return refusal(refused)
		})
	})
}

// decided returns the command with the person and reason that its decision names.
func decided(c *historyv1.TaskCommand) *historyv1.TaskCommand {
	if d := c.GetDecision(); d != nil {
		return &historyv1.TaskCommand{Task: c.GetTask(), By: d.GetBy(), Reason: d.GetReason(), Decision: d}
	}
	return c
}
