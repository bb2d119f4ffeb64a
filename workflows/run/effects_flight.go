package run

import (
	"strings"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/calls"
	"switchyard/workflows/core/child"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/dataflow"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/phrase"
)

// fly carries out effects of the units in flight, in order.
func (r *run) fly(effects []flight.Effect) {
	for _, effect := range effects {
		switch e := effect.(type) {
		case flight.Raise:
			r.raise(e.Event)
		case flight.Wake:
			r.wake()
		case flight.Continue:
			r.carryOutCommand(r.commands.SetPaused(false, &historyv1.TaskCommand{Reason: e.Reason}))
		case flight.LookUp:
			r.data.Ask(dataflow.Question{Task: e.Task, Kind: dataflow.Cache, Claim: e.Claim})
		case flight.SettleCached:
			r.updateContext(e.Cached.GetResponse().GetResult().GetContextUpdate(), e)
		case flight.NameLock:
			r.data.Ask(dataflow.Question{Task: e.Task, Kind: dataflow.Lock, Claim: e.Claim})
		case flight.Render:
			r.data.Ask(dataflow.Question{Task: e.Task, Kind: dataflow.Template, Claim: e.Claim})
		case flight.StartRun:
			r.startRun(e.Unit, e.Spec)
		case flight.ReattachRun:
			r.carryOutChild(r.children.Reattach(child.Owner{Unit: e.Unit}, e.Unit.Run.ID, e.Unit.Run.First, r.now()))
		case flight.CancelRun:
			r.carryOutChild(r.children.Cancel(child.Owner{Unit: e.Unit}, e.Why, e.Now))
		case flight.Settle:
			r.updateContext(e.End.Response.GetResult().GetContextUpdate(), e)
		case flight.AskRetry:
			r.data.Ask(dataflow.Question{Task: e.End.Ended.Task, Kind: dataflow.Retry, End: e.End})
		case flight.Cache:
			r.uncached = append(r.uncached, e.End)
		case flight.After:
			r.calls.After(e.Delay, e.Summary, func() { r.fly(r.flight.Due(e.Timer, r.now())) })
		case flight.StartTimer:
			r.calls.Charge(calls.CommandCharge)
			r.timers[e.Timer] = r.calls.Timer(e.Delay, e.Summary, func() { r.fly(r.flight.Due(e.Timer, r.now())) })
		case flight.StopTimer:
			r.timers[e.Timer]()
			delete(r.timers, e.Timer)
		case flight.Reattach:
			req := r.data.AttemptRequest(e.Unit)
			req.Reattach, req.Stop = true, e.Stop
			r.execute(e.Unit, req)
		case flight.Reserve:
			if e.Undo {
				r.giveUp(e.Unit)
			} else {
				r.reserve(e.Unit)
			}
		case flight.Cancel:
			r.calls.Charge(calls.CommandCharge)
			if cancel := r.cancels[e.Unit]; cancel != nil { // none yet for an attempt that was away before this execution
				cancel()
			}
		case flight.Find:
			r.find(e.Unit)
		case flight.Detach:
			r.detach(e.Node, e.Request)
		case flight.FindSilent:
			r.findSilent(e.Nodes)
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
	case flight.Show:
		if rec := r.core.Task(e.Task); e.Event != "" {
			r.log.Add(r.now(), e.Event, e.Task, rec.Node, rec.Attempt, rec.Claim, e.Text, e.Facts...)
			switch e.Event {
			case v1.EventPaused: // it waits for an approval
				r.notifyOpen(v1.NotifyApproval, e.Task, r.flight.ApprovalOf(e.Task).Text())
			case v1.EventReminded:
				r.notifyOpen(v1.NotifyReminded, e.Task, r.flight.ApprovalOf(e.Task).Text())
			}
		}
		r.status.Touch(e.Task)
	case flight.UseNode:
		r.wanted.AddNode(e.Node)
	case flight.LogCommand:
		r.logCommand(e.Task, e.Event, e.Command)
	case flight.ShowSlot:
		r.showSlot(e.Holders)
	case flight.ShowStarted:
		r.status.SetStartedAt(e.Task, e.At)
	case flight.ShowEnd:
		r.status.EndAttempt(e.End.Ended.Task, e.End, r.now())
		e.End.Response.AgentEvents = nil // the run has them as events; they are not part of a stored result
	case flight.ShowLate:
		r.showLate(e)
	}
}

// showLate shows that a task, or the run, is late.
func (r *run) showLate(e flight.ShowLate) {
	r.wanted.AddLate(e.Since)
	rec := dag.Record{}
	if e.Task != eventlog.WholeRun {
		rec = r.core.Task(e.Task)
		r.status.Touch(e.Task)
	}
	r.log.Add(r.now(), v1.EventLate, e.Task, rec.Node, rec.Attempt, rec.Claim, e.Text, eventlog.KeyUntil.Of(e.Since.UTC().Format(time.RFC3339)))
	r.notifyOpen(v1.NotifyLate, e.Task, e.Text)
	r.showAttributes()
}

// showSlot shows which runs hold the run slots that this run waits for, or that it has one if there are none.
func (r *run) showSlot(holders []string) {
	if len(holders) == 0 {
		r.status.SetSlotWait("")
		return
	}
	r.status.SetSlotWait(phrase.SlotWait(r.Input.GetDefinition().GetConcurrency().GetMaxRuns(), holders))
	r.setState(v1.RunPending)
	r.log.Add(r.now(), v1.EventQueued, eventlog.WholeRun, "", 0, 0, "waits for "+strings.Join(holders, ", "), eventlog.KeyWaitsFor.Of(holders))
}
