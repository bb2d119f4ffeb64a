package run

import (
	"errors"

	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/command"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

// commands owns what people ask of the run: it queues their commands for the main loop, refuses those that come too late, and
// records a cancellation.
type commands struct {
	*execution

	queue     []*queued
	refusal   error // the answer to commands once the loop no longer executes them; nil until then
	cancelled bool
	canceller string // who has cancelled the run, or "" if unknown
	handlers  []updateHandler
}

// queued is a change to the run that a person asks for. The main loop executes it between two rounds and then answers the
// caller.
type queued struct {
	do   func() error
	done bool
	err  error
}

// perform queues a command for the main loop and returns its result. It refuses a command that comes too late.
func (cs *commands) perform(ctx workflow.Context, do func() error) error {
	if cs.refusal != nil {
		return cs.refusal
	}
	c := &queued{do: do}
	cs.queue = append(cs.queue, c)
	if err := cs.awaitAnswer(ctx, func() bool { return c.done }); err != nil {
		return err
	}
	return c.err
}

// awaitAnswer waits, in a handler, until something is done. It returns the refusal if the main loop no longer executes commands
// before that.
func (cs *commands) awaitAnswer(ctx workflow.Context, isDone func() bool) error {
	if err := workflow.Await(ctx, func() bool { return isDone() || cs.refusal != nil }); err != nil {
		return err
	}
	if !isDone() {
		return cs.refusal
	}
	return nil
}

// awaitBegin waits, in a handler, until the run has begun or refuses commands.
func (cs *commands) awaitBegin(ctx workflow.Context) error {
	return workflow.Await(ctx, func() bool { return cs.core != nil || cs.refusal != nil })
}

// refused returns the answer to commands once the loop no longer executes them; until then it returns nil.
func (cs *commands) refused() error { return cs.refusal }

// hasQueued reports whether commands are queued.
func (cs *commands) hasQueued() bool { return len(cs.queue) > 0 }

// reconsider executes commands again, because the run does not continue as new after all.
func (cs *commands) reconsider() { cs.refusal = nil }

// refuseAll refuses all queued and later commands, because the main loop has ended. It returns when every update has its
// answer.
func (cs *commands) refuseAll(kind string, why error) {
	cs.refuse(kind, why)
	cs.awaitHandlers()
}

// refuse refuses all queued and later commands.
func (cs *commands) refuse(kind string, why error) { cs.refusal = refuse(kind, why) }

// obey executes the queued commands.
func (cs *commands) obey() {
	for len(cs.queue) > 0 {
		c := cs.queue[0]
		cs.queue = cs.queue[1:]
		c.err = c.do()
		c.done = true
	}
}

var (
	errNotBegun   = errors.New("the run has not begun; try again")
	errContinuing = errors.New("the run is continuing as new; try again")
)

// checks returns what decides whether a command can be carried out now.
func (cs *commands) checks() command.Checks {
	return command.Checks{
		Core: cs.core, Records: cs.records, Flight: cs.flight, FanOuts: cs.fanOuts, ShownState: cs.status.ShownState,
		IsCancelled: cs.cancelled, Approval: cs.approval, SubmittedBy: cs.submittedBy,
	}
}

// awaitHandlers waits until every update has its answer.
func (cs *commands) awaitHandlers() {
	// The only error is a cancelled context, and ctx is never cancelled.
	_ = workflow.Await(cs.ctx, func() bool { return workflow.AllHandlersFinished(cs.ctx) })
}

func refuse(kind string, err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), kind, nil)
}

// refusal returns the error of an update that is refused, or nil if it is not.
func refusal(r *command.Refusal) error {
	if r == nil {
		return nil
	}
	return refuse(r.Kind, r)
}

// refuseSignals receives signals that look like decisions and logs them as refused. Decisions are updates only; a signal has no
// answer that could report the refusal.
func (cs *commands) refuseSignals() {
	for _, signal := range []struct{ name, verdict string }{{names.ApproveUpdate, v1.ApprovalApproved}, {names.RejectUpdate, v1.ApprovalRejected}} {
		ch := workflow.GetSignalChannel(cs.root, signal.name)
		for ch.Len() > 0 {
			var sent converter.RawValue
			if !cs.receiveSignal(ch, &sent) || cs.status == nil {
				continue
			}
			var c historyv1.TaskCommand
			if payload := sent.Payload(); payload == nil || converter.GetDefaultDataConverter().FromPayload(payload, &c) != nil {
				c.Reset()
			}
			cs.logRefused(c.GetTask(), signal.verdict, dag.OneLine(c.GetBy()), "signals cannot approve or reject; use `switchyard runs approve` or `reject`")
		}
	}
}

// logRefused logs a decision that does not count.
func (cs *commands) logRefused(task, verdict, claimed, why string) {
	i := eventlog.WholeRun
	if index, ok := cs.core.Index(task); ok && task != "" {
		i = index
	}
	cs.log.Add(cs.now(), v1.EventRefused, i, "", 0, 0, phrase.Because(phrase.By(verdict, claimed), why), eventlog.CommandFacts(claimed, why)...)
}
