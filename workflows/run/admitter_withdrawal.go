package run

import (
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// withdraw cancels the pending request of a task.
func (ad *admitter) withdraw(i int) {
	if ad.queue.Remove(i) {
		return
	}
	u := ad.units[i]
	if u == nil {
		return // one of its expressions is being evaluated
	}
	if i != u.lead {
		ad.removeMember(u, i)
		return
	}
	ad.placer.unrequest(u)
	ad.leave(u)
	for _, m := range u.members {
		if m != i {
			ad.moveToNewClaim(m, "", "")
		}
	}
}

// moveToNewClaim requests a task whose request was withdrawn under a new claim. A withdrawn claim is never used again.
func (ad *admitter) moveToNewClaim(i int, reason, text string) {
	if rec := ad.core.Task(i); rec.State == v1.TaskQueued && !rec.Backoff {
		ad.raise(dag.Placed{Task: i, Claim: rec.Claim},
			dag.Ended{Task: i, Claim: rec.Claim, State: v1.AttemptMoved, Reason: reason, Error: text, ExitCode: -1})
	}
}

// suspend withdraws a unit that has not started yet, so that its members queue for admission again.
func (ad *admitter) suspend(u *unit, reason, text string) {
	ad.placer.unrequest(u)
	ad.leave(u)
	for _, m := range u.members {
		ad.moveToNewClaim(m, reason, text)
	}
}

// giveBack releases the placement of a unit that has not started there.
func (ad *admitter) giveBack(a assignment, reason, text string) {
	ad.placer.release(a.task, a.claim, "")
	ad.leave(a.unit)
	for _, m := range a.unit.members {
		ad.raise(dag.Ended{
			Task: m, Claim: ad.core.Task(m).Claim, State: v1.AttemptMoved, Reason: reason, Error: text, ExitCode: -1,
		})
	}
}

// setAside withdraws the unstarted part of a unit, which then queues for admission again. Running tasks and tasks that wait for
// approval continue.
func (ad *admitter) setAside(u *unit, reason, text string) {
	if a, ok := ad.placer.takeAssignment(u); ok {
		ad.giveBack(a, reason, text)
		return
	}
	if ad.placer.waitsForNode(u.lead, u.claim) || ad.locks.waits(u) {
		ad.suspend(u, reason, text)
	}
}

// setAllAside withdraws everything that has not started.
func (ad *admitter) setAllAside(reason, text string) {
	for i := range ad.core.Len() {
		if u := ad.units[i]; u != nil && u.lead == i {
			ad.setAside(u, reason, text)
		}
	}
}

// takeBackRequests withdraws the requests for nodes and locks that the next execution might not repeat, because it may admit
// other tasks or form other batches. A placement or lock granted for such a request would never be used. It reports whether
// there is anything to send to the queue first.
func (ad *admitter) takeBackRequests() bool {
	left := false
	for i := range ad.core.Len() {
		if u := ad.units[i]; u != nil && u.lead == i && (ad.placer.waitsForNode(i, u.claim) && ad.dependsOnOthers(i) || ad.locks.waits(u)) {
			ad.suspend(u, v1.ReasonContinued, "the run continues as new")
			left = true
		}
	}
	return left
}

// dependsOnOthers reports whether the request of a task depends on what else is waiting.
func (ad *admitter) dependsOnOthers(i int) bool {
	a := ad.admissible(i)
	return a.Batch.Auto || a.Batch.Size > 1 || a.Concurrency > 0 || a.Lock.Name != "" || ad.in.GetDefinition().GetMaxParallel() > 0
}
