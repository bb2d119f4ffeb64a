package run

import (
	"strings"

	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

// carryOutFlight carries out effects of the units in flight, in order.
func (r *run) carryOutFlight(effects []flight.Effect) {
	for _, effect := range effects {
		switch e := effect.(type) {
		case flight.Raise:
			r.raise(e.Event)
		case flight.Wake:
			r.wake()
		case flight.NameLock:
			r.evaluator.ask(question{task: e.Task, kind: asksLock, claim: e.Claim, answered: func(a *v1.ConditionAnswer) {
				r.fly(r.flight.LockNamed(e.Task, a))
			}})
		case flight.AskPerson:
			r.approvals.ask(e.Unit)
		case flight.StartRun:
			r.childRuns.start(e.Unit)
		case flight.Settle:
			r.updateContext(e.End.Response.GetResult().GetContextUpdate(), func(refusal string) { r.fly(r.flight.Settled(e.End, refusal)) })
		case flight.AskRetry:
			r.evaluator.ask(question{task: e.End.Ended.Task, kind: asksRetry, end: &e.End, answered: func(a *v1.ConditionAnswer) {
				r.fly(r.flight.RetryAnswered(e.End, a))
			}})
		case flight.Cache:
			r.cache.queue(e.End)
		case flight.After:
			r.outbox.after(e.Delay, e.Summary, func() { r.fly(r.flight.Due(e.Timer, r.now())) })
		case flight.Reattach:
			req := r.requests.attemptRequest(e.Unit)
			req.Reattach, req.Stop = true, e.Stop
			r.execute(e.Unit, req)
		case flight.Cancel:
			r.outbox.charge(commandCharge)
			r.cancels[e.Unit]()
		case flight.Find:
			r.find(e.Unit)
		case flight.Detach:
			r.detach(e.Node, e.Request)
		case flight.LoadProgress:
			e.Answer.Progress = r.loadProgress(e.Answer.Beat)
			r.fly(r.flight.Progressed(e.Unit, e.Answer))
		case flight.AwaitRecord:
			r.awaitRecord(e)
		default:
			r.showFlight(effect)
		}
	}
}

// showFlight shows people what has happened to the units in flight.
func (r *run) showFlight(effect flight.Effect) {
	switch e := effect.(type) {
	case flight.UseNode:
		r.view.addNode(e.Node)
	case flight.ShowPlace:
		var there []eventlog.Fact
		if e.Assignment != nil {
			there = eventlog.PlaceFacts(e.Assignment)
		}
		r.status.SetPlace(e.Task, e.Assignment.GetWhy(), e.Lead, there...)
	case flight.ShowWait:
		r.status.SetWaitReason(e.Task, e.Text)
	case flight.ShowSlot:
		r.showSlot(e.Holders)
	case flight.ShowRecord:
		r.status.RecordChanged(e.Task)
	case flight.ShowStarted:
		r.status.SetStartedAt(e.Task, e.At)
	case flight.ShowSilent:
		r.status.SetSilent(e.Task, e.Notice, e.Started, r.now())
	case flight.ShowAway:
		r.status.SetAway(e.Task, e.Text, r.now())
	case flight.ShowBack:
		r.status.SetBack(e.Task, r.now())
	case flight.ShowAttended:
		r.status.EndSilence(e.Task)
		r.status.EndAway(e.Task)
	case flight.ShowEnd:
		r.status.EndAttempt(e.End.Ended.Task, e.End, r.now())
		e.End.Response.AgentEvents = nil // the run has them as events; they are not part of a stored result
	}
}

// showSlot shows which runs hold the run slots that this run waits for, or that it has one if there are none.
func (r *run) showSlot(holders []string) {
	if r.awaitsSlot = len(holders) > 0; !r.awaitsSlot {
		r.status.SetSlotWait("")
		return
	}
	r.status.SetSlotWait(phrase.SlotWait(r.in.GetDefinition().GetConcurrency().GetMaxRuns(), holders))
	r.view.setState(v1.RunPending)
	r.log.Add(r.now(), v1.EventQueued, eventlog.WholeRun, "", 0, 0, "waits for "+strings.Join(holders, ", "), eventlog.KeyWaitsFor.Of(holders))
}

// receiveGrants applies the answers that locks have signalled.
func (r *run) receiveGrants() {
	grants := workflow.GetSignalChannel(r.root, names.GrantedSignal)
	for grants.Len() > 0 {
		var g v1.Granted
		if r.receiveSignal(grants, &g) {
			r.fly(r.flight.Granted(&g))
		}
	}
}
