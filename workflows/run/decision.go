package run

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
	"switchyard/workflows/phrase"
)

// signed returns an error if a decision does not count. Where people log in, only a decision counts that a gateway has signed
// for this task of this execution. Each refused decision is logged as an event of the run. For a decision about the run itself,
// task is "".
func (r *run) signed(ctx workflow.Context, d *v1.Decision, task, verdict, claimed string) error {
	// The run's input states whether people log in.
	if err := workflow.Await(ctx, func() bool { return r.core != nil || r.refusal != nil }); err != nil {
		return err
	}
	if r.refusal != nil || !r.in.GetSignedDecisions() {
		return nil // if the run refuses commands, the command itself gets that answer
	}
	why := r.misdirected(d, task, verdict)
	if why == "" {
		var res v1.VerifyResponse
		verifying := workflow.WithLocalActivityOptions(ctx, options.Must("verify who has decided", 0))
		if err := workflow.ExecuteLocalActivity(verifying, names.VerifyDecisionActivity, &v1.VerifyRequest{Decision: d}).Get(ctx, &res); err != nil {
			return refuse(names.TaskStateError, errors.New("the signature of the decision cannot be verified now; try again: "+causeOf(err)))
		}
		why = res.GetRefused()
	}
	if why == "" {
		return nil
	}
	return r.perform(ctx, func() error {
		r.logRefused(task, verdict, claimed, why)
		return refuse(names.TaskStateError, fmt.Errorf("the decision does not count: %s", why))
	})
}

// misdirected returns why a decision is not meant for this task of this execution, or "" if it is.
func (r *run) misdirected(d *v1.Decision, task, verdict string) string {
	switch {
	case d == nil:
		return "it was not sent through a gateway; use `switchyard runs approve` or `reject`"
	case d.GetWorkflow() != r.self || d.GetTask() != task:
		return "it was signed for another task or run"
	case d.GetExecution() != workflow.GetInfo(r.root).FirstRunID:
		return "it was signed for another generation of the run"
	case d.GetVerdict() != verdict:
		return "it was signed as " + d.GetVerdict()
	}
	return ""
}

// logRefused logs a decision that does not count.
func (r *run) logRefused(task, verdict, claimed, why string) {
	i := eventlog.WholeRun
	if index, ok := r.core.Index(task); ok && task != "" {
		i = index
	}
	r.log.Add(workflow.Now(r.ctx), v1.EventRefused, i, "", 0, 0, phrase.Because(phrase.By(verdict, claimed), why), eventlog.CommandFacts(claimed, why)...)
}

// refuseSignals receives signals that look like decisions and logs them as refused. Decisions are updates only; a signal has no
// answer that could report the refusal.
func (r *run) refuseSignals() {
	for _, signal := range []struct{ name, verdict string }{{names.ApproveUpdate, v1.ApprovalApproved}, {names.RejectUpdate, v1.ApprovalRejected}} {
		ch := workflow.GetSignalChannel(r.root, signal.name)
		for ch.Len() > 0 {
			var sent converter.RawValue
			if !ch.ReceiveAsync(&sent) || r.status == nil {
				continue
			}
			var c v1.TaskCommand
			if payload := sent.Payload(); payload == nil || converter.GetDefaultDataConverter().FromPayload(payload, &c) != nil {
				c.Reset()
			}
			r.logRefused(c.GetTask(), signal.verdict, dag.OneLine(c.GetBy()), "a signal decides nothing; use `switchyard runs approve` or `reject`")
		}
	}
}

// newDecisionHandler returns the update handler for a decision about a task.
func (r *run) newDecisionHandler(name, description, verdict string, may func(int, *v1.TaskCommand) error, do func(int, *v1.TaskCommand)) updateHandler {
	target := func(c *v1.TaskCommand) (int, error) {
		return r.target(c.GetTask(), func(i int) error { return may(i, c) })
	}
	validate := func(c *v1.TaskCommand) error {
		_, err := target(decided(c))
		return err
	}
	return newUpdateHandler(r, name, description, validate, func(ctx workflow.Context, c *v1.TaskCommand) error {
		if err := r.signed(ctx, c.GetDecision(), c.GetTask(), verdict, c.GetBy()); err != nil {
			return err
		}
		return r.perform(ctx, func() error {
			c := decided(c)
			i, err := target(c)
			if err == nil {
				do(i, c)
			}
			return err
		})
	})
}

// decided returns the command with the person and reason that its decision names.
func decided(c *v1.TaskCommand) *v1.TaskCommand {
	if d := c.GetDecision(); d != nil {
		return &v1.TaskCommand{Task: c.GetTask(), By: d.GetBy(), Reason: d.GetReason(), Decision: d}
	}
	return c
}
