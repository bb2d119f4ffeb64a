package run

import (
	"errors"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

// slotClaim is the claim under which the run itself holds its run slot.
const slotClaim = "run"

// locks owns the lock requests of a run, the locks that its units hold, and its run slot. A claim belongs to the lead of a unit
// or to the run itself.
type locks struct {
	*execution
	admitter lockUnits
	store    mustCaller
	view     lockView

	requests []*v1.LockRequest // for the next call, in order
	wanted   map[string]*unit  // units that wait for their lock, by claim
	held     map[string]*unit  // units that hold their lock, by claim
	runSlot  bool              // the run holds its run slot
}

// The locks use these parts of other components.
type (
	lockUnits interface {
		enter(u *unit)
		leave(u *unit)
	}
	lockView interface {
		setState(state string)
	}
)

// lockClaim returns the claim under which a unit holds its lock.
func (l *locks) lockClaim(u *unit) string { return names.AttemptID(l.core.Name(u.lead), u.claim) }

// acquire requests the lock of a unit. The unit enters when the lock is granted.
func (l *locks) acquire(u *unit) {
	claim := l.lockClaim(u)
	l.wanted[claim] = u
	l.ask(u.lock.Name, &v1.AcquireRequest{
		Claim: claim, Limit: int32(u.lock.Limit), Priority: l.core.Definition(u.lead).GetPriority(),
	})
}

// free releases the lock of a unit or withdraws the request for it.
func (l *locks) free(u *unit) {
	if u.lock.Name == "" {
		return
	}
	claim := l.lockClaim(u)
	if l.wanted[claim] == u || l.held[claim] == u {
		delete(l.wanted, claim)
		delete(l.held, claim)
		l.release(u.lock.Name, claim)
	}
}

// waits reports whether a unit has requested its lock and does not hold it yet.
func (l *locks) waits(u *unit) bool {
	return u.lock.Name != "" && l.wanted[l.lockClaim(u)] == u
}

// restoreUnit registers the lock that a unit has held since the previous execution.
func (l *locks) restoreUnit(u *unit) {
	if u.lock.Name != "" {
		l.held[l.lockClaim(u)] = u
	}
}

// hasRequests reports whether requests wait for the next call.
func (l *locks) hasRequests() bool { return len(l.requests) > 0 }

// ask adds a lock request to the next call. The holder is this workflow; to the lock, its later executions are the same
// holder.
func (l *locks) ask(lock string, a *v1.AcquireRequest) {
	a.Holder, a.Execution, a.Asker = l.self, l.first, l.original
	for _, held := range l.in.GetHeldLocks() {
		if held.GetLock() == lock {
			a.Above = append(a.Above, held)
		}
	}
	// A call may be sent twice as a whole, so it must not release a lock that it also requests.
	l.requests = slices.DeleteFunc(l.requests, func(q *v1.LockRequest) bool {
		return q.GetFree() != nil && q.GetLock() == lock && q.GetFree().GetClaim() == a.GetClaim()
	})
	l.requests = append(l.requests, &v1.LockRequest{Lock: lock, Acquire: a})
}

// release adds the release of a lock, or of the request for it, to the next call.
func (l *locks) release(lock, claim string) {
	l.requests = append(l.requests, &v1.LockRequest{Lock: lock, Free: &v1.ReleaseRequest{Holder: l.self, Claim: claim}})
}

// send sends the queued lock requests, in one call a round.
func (l *locks) send() {
	if len(l.requests) == 0 {
		return
	}
	req := &v1.LockRequests{Requests: l.requests}
	l.requests = nil
	switch err := l.store.mustNow("ask for locks", names.AskLocksActivity, nil, req); {
	case errors.Is(err, errInterrupted):
		l.requests = append(req.Requests, l.requests...)
	case err != nil:
		workflow.GetLogger(l.ctx).Error("could not send lock requests", "error", err)
	}
}

// receiveGrants applies the grants that locks have signalled.
func (l *locks) receiveGrants() {
	grants := workflow.GetSignalChannel(l.root, names.GrantedSignal)
	for grants.Len() > 0 {
		var g v1.Granted
		if l.receiveSignal(grants, &g) {
			l.granted(&g)
		}
	}
}

// granted applies an answer of a lock. Answers may arrive twice and out of order.
func (l *locks) granted(g *v1.Granted) {
	if g.GetClaim() == slotClaim {
		l.slotGranted(g)
		return
	}
	u := l.wanted[g.GetClaim()]
	switch {
	case g.GetAsker() != l.original: // a previous execution made the request and has withdrawn it
	case u == nil:
		if l.held[g.GetClaim()] == nil && len(g.GetHolders()) == 0 {
			l.release(g.GetLock(), g.GetClaim()) // the run no longer needs the lock
		}
	case g.GetDeadlock():
		delete(l.wanted, g.GetClaim())
		l.admitter.leave(u)
		text := phrase.Deadlock("the lock "+lockName(g.GetLock()), g.GetHolders(), "use another lock here, or none for the tasks that start the run")
		for _, m := range u.members {
			l.raise(dag.GaveUp{Task: m, Claim: l.core.Task(m).Claim, Reason: v1.ReasonDeadlock, Error: text})
		}
	case len(g.GetHolders()) > 0:
		l.showWait(u, phrase.LockWait(lockName(g.GetLock()), g.GetHolders()))
	default:
		delete(l.wanted, g.GetClaim())
		l.held[g.GetClaim()] = u
		l.showWait(u, "")
		l.admitter.enter(u)
		l.wake()
	}
}

// showWait shows why the members of a unit wait.
func (l *locks) showWait(u *unit, why string) {
	for _, m := range u.members {
		l.status.SetWaitReason(m, why)
	}
}

// heldBy returns the locks that are held above the run of a unit: those above this run, its run slot, and the lock of the unit.
func (l *locks) heldBy(u *unit) []*v1.HeldLock {
	held := slices.Clone(l.in.GetHeldLocks())
	if l.runSlot {
		held = append(held, &v1.HeldLock{Lock: l.slotLock(), Holder: l.self, Claim: slotClaim})
	}
	if u != nil && u.lock.Name != "" {
		held = append(held, &v1.HeldLock{Lock: u.lock.Name, Holder: l.self, Claim: l.lockClaim(u)})
	}
	return held
}

// lockName returns the name of a lock as written in the definition.
func lockName(lock string) string {
	_, name, _ := strings.Cut(lock, ":")
	return name
}
