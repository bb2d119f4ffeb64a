package run

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/names"
)

// turnLock returns the lock that limits the open runs of the workflow, or "" if there is no limit.
func (r *run) turnLock() string {
	if r.in.GetPartition() != nil || r.in.GetDefinition().GetConcurrency().GetMaxRuns() <= 0 {
		return ""
	}
	return names.RunLock(r.in.GetDefinition().GetName())
}

// start begins the run once it is approved, if it needs approval, and has its run slot; until then nothing starts. It returns
// the first decisions, which hold the end of the run if something ends it before.
func (r *run) start() dag.Decisions {
	lock := r.turnLock()
	if r.in.GetState() != nil {
		r.locks.runSlot = lock != "" // a previous execution acquired it
		return r.startAgain()
	}
	early, over := r.awaitApproval()
	switch {
	case over:
		return r.core.Apply(early...)
	case lock == "":
		return r.core.Start(early...)
	}
	c := r.in.GetDefinition().GetConcurrency()
	r.askLock(lock, &v1.AcquireRequest{Claim: turnClaim, Limit: c.GetMaxRuns(), Strategy: c.GetStrategy()})
	for !r.locks.runSlot {
		r.askLocks()
		// The only error is a cancelled context, and ctx is never cancelled.
		_ = workflow.Await(r.ctx, r.hasNews)
		r.gather()
		early, r.events = append(early, r.events...), nil
		if slices.ContainsFunc(early, endsRun) {
			return r.core.Apply(early...)
		}
	}
	return r.core.Start(early...)
}

// startAgain resumes the state that the previous execution left. Open partitions get their current order and answer with a
// report.
func (r *run) startAgain() dag.Decisions {
	decisions := r.core.Start()
	r.haltPartitions(decisions.Halt)
	r.orderAllPartitions()
	return decisions
}

// endsRun reports whether an event ends a run that has not begun.
func endsRun(e dag.Event) bool {
	switch e.(type) {
	case dag.Cancel, dag.Abort:
		return true
	}
	return false
}

// slotGranted applies the reply to a request for a run slot: granted, taken by other runs, or refused.
func (r *run) slotGranted(g *v1.Granted) {
	others := strings.Join(g.GetHolders(), ", ")
	switch {
	case g.GetRefused():
		r.events = append(r.events, r.turnedDown(others))
	case len(g.GetHolders()) == 0:
		r.locks.runSlot = true
	case !r.locks.runSlot:
		r.setState(v1.RunPending)
		r.log.Add(workflow.Now(r.ctx), v1.EventQueued, eventlog.WholeRun, "", 0, 0, "waits for "+others, eventlog.KeyWaitsFor.Of(g.GetHolders()))
	}
}

// turnedDown returns the end of a run that gets no run slot or has lost it.
func (r *run) turnedDown(others string) dag.Abort {
	c := r.in.GetDefinition().GetConcurrency()
	end := dag.Abort{State: v1.RunCancelled, Reason: v1.ReasonConcurrency}
	if r.locks.runSlot || cmp.Or(c.GetStrategy(), v1.StrategyQueue) == v1.StrategyQueue || c.GetStrategy() == v1.StrategyReplace {
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
func (r *run) releaseSlot() {
	if lock := r.turnLock(); lock != "" {
		r.freeLock(lock, turnClaim)
	}
	r.askLocks()
}
