package run

import (
	"cmp"
	"fmt"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

// slotLock returns the lock that limits the open runs of the workflow, or "" if there is no limit.
func (l *locks) slotLock() string {
	if l.in.GetPartition() != nil || l.in.GetDefinition().GetConcurrency().GetMaxRuns() <= 0 {
		return ""
	}
	return names.RunLock(l.in.GetDefinition().GetName())
}

// askSlot requests a run slot. It returns false if the runs of the workflow have no limit.
func (l *locks) askSlot() bool {
	lock := l.slotLock()
	if lock == "" {
		return false
	}
	c := l.in.GetDefinition().GetConcurrency()
	l.ask(lock, &v1.AcquireRequest{Claim: slotClaim, Limit: c.GetMaxRuns(), Strategy: c.GetStrategy()})
	return true
}

// restoreSlot registers the run slot that a previous execution acquired, if the run needs one.
func (l *locks) restoreSlot() { l.runSlot = l.slotLock() != "" }

// hasSlot reports whether the run holds its run slot.
func (l *locks) hasSlot() bool { return l.runSlot }

// slotGranted applies the reply to a request for a run slot: granted, taken by other runs, or refused.
func (l *locks) slotGranted(g *v1.Granted) {
	others := strings.Join(g.GetHolders(), ", ")
	switch {
	case g.GetDeadlock():
		name := l.in.GetDefinition().GetName()
		l.raise(dag.Abort{
			State: v1.RunFailed, Reason: v1.ReasonDeadlock,
			Error: phrase.Deadlock("the place of a run of "+name, g.GetHolders(), "raise concurrency.maxRuns, or start no run of "+name+" from within another one"),
		})
	case g.GetRefused():
		l.raise(l.slotEnd(others))
	case len(g.GetHolders()) == 0:
		l.runSlot, l.awaitsSlot = true, false
		l.status.SetSlotWait("")
	case !l.runSlot:
		l.awaitsSlot = true
		l.status.SetSlotWait(phrase.SlotWait(l.in.GetDefinition().GetConcurrency().GetMaxRuns(), g.GetHolders()))
		l.view.setState(v1.RunPending)
		l.log.Add(l.now(), v1.EventQueued, eventlog.WholeRun, "", 0, 0, "waits for "+others, eventlog.KeyWaitsFor.Of(g.GetHolders()))
	}
}

// slotEnd returns the end of a run that gets no run slot or has lost it.
func (l *locks) slotEnd(others string) dag.Abort {
	c := l.in.GetDefinition().GetConcurrency()
	end := dag.Abort{State: v1.RunCancelled, Reason: v1.ReasonConcurrency}
	if l.runSlot || cmp.Or(c.GetStrategy(), v1.StrategyQueue) == v1.StrategyQueue || c.GetStrategy() == v1.StrategyReplace {
		end.Error = "replaced by " + others
		return end
	}
	if c.GetStrategy() == v1.StrategyFail {
		end.State = v1.RunRejected
	}
	end.Error = fmt.Sprintf("open already: %s; the workflow's concurrency.maxRuns is %d", others, c.GetMaxRuns())
	return end
}

// releaseSlot releases the run slot and everything else that still has to be released.
func (l *locks) releaseSlot() {
	if lock := l.slotLock(); lock != "" {
		l.release(lock, slotClaim)
	}
	l.send()
}
