package run

import (
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/core/command"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/definition"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
	"switchyard/workflows/phrase"
)

// carryOutCommand carries out effects of what people ask, in order.
func (r *run) carryOutCommand(effects []command.Effect) {
	for _, effect := range effects {
		switch e := effect.(type) {
		case command.Fly:
			r.fly(e.Effects)
		case command.Spread:
			r.spread(e.Effects)
		case command.ShowPausedBy:
			r.status.SetPausedBy(e.Text)
		case command.ShowSteeredBy:
			r.status.SetSteeredBy(e.Task, e.Who)
		case command.ShowApproval:
			r.status.SetApproval(e.Approval)
		case command.LogRun:
			r.logCommand(eventlog.WholeRun, e.Event, e.Command)
		}
	}
}

// logCommand adds the event of a person's command for a task, or for the whole run, to the log.
func (r *run) logCommand(i int, event string, c *historyv1.TaskCommand) {
	var rec dag.Record
	if i != eventlog.WholeRun {
		rec = r.core.Task(i)
	}
	r.log.Add(r.now(), event, i, "", rec.Attempt, rec.Claim, phrase.Because(phrase.By("", c.GetBy()), c.GetReason()),
		eventlog.CommandFacts(c.GetBy(), c.GetReason())...)
}

// steer asks the node of an attempt for what a person wants, and then answers the update.
func (r *run) steer(q *request, s *command.Steer) {
	name := r.core.Name(s.Task)
	req := &historyv1.SteerRequest{RunId: r.RunID, Chain: r.Chain, Task: name, Claim: s.Claim, Action: s.Action}
	call := options.Steer(s.Node, s.Action+" "+name)
	if s.Action == command.ActionRestart {
		call = options.Restart(s.Node, s.Action+" "+name, definition.StopGrace(r.core.Definition(s.Task)))
	}
	r.calls.Watch(r.calls.Activity(call, names.SteerActivity, req, 0), func(f workflow.Future) {
		var res historyv1.SteerResponse
		err := f.Get(r.ctx, &res)
		answer := command.SteerAnswer{Refused: res.GetRefused(), IsFailed: err != nil}
		if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
			answer.Cause = app.Message()
		}
		effects, refused := r.commands.SteeringAnswered(s, answer, r.now())
		q.done, q.err = true, refusal(refused)
		r.carryOutCommand(effects)
	})
}
