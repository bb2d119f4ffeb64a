package run

import (
	"errors"
	"slices"
	"strings"

	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

// turnClaim is the claim of the run itself, for its place among the runs of its workflow.
const turnClaim = "run"

// locks is what a run has asked of locks. A claim is that of the lead of a unit, or
// of the run itself.
type locks struct {
	requests []*v1.LockRequest // to be sent in the next call, in order
	wanted   map[string]*unit  // that wait for their lock, by claim
	held     map[string]*unit  // that have it
	runSlot  bool              // the run has its place
}

// lockClaim is the claim under which a unit has its lock.
func (r *run) lockClaim(u *unit) string { return names.AttemptID(r.core.Name(u.lead), u.claim) }

// acquire asks for the lock of a unit, which enters when it has it.
func (r *run) acquire(u *unit) {
	claim := r.lockClaim(u)
	r.locks.wanted[claim] = u
	r.askLock(u.lock.Name, &v1.AcquireRequest{
		Claim: claim, Limit: int32(u.lock.Limit), Priority: r.core.Definition(u.lead).GetPriority(),
	})
}

// free gives the lock of a unit back, or asks for it no more.
func (r *run) free(u *unit) {
	if u.lock.Name == "" {
		return
	}
	claim := r.lockClaim(u)
	if r.locks.wanted[claim] == u || r.locks.held[claim] == u {
		delete(r.locks.wanted, claim)
		delete(r.locks.held, claim)
		r.freeLock(u.lock.Name, claim)
	}
}

// waitsForLock reports whether a unit has asked for its lock and does not have it.
func (r *run) waitsForLock(u *unit) bool {
	return u.lock.Name != "" && r.locks.wanted[r.lockClaim(u)] == u
}

// track counts a unit that was under way in the execution before, with the lock that
// it has.
func (r *run) track(u *unit) {
	for _, m := range u.members {
		r.units[m] = u
	}
	r.admission.UnderWay(r.admissible(u.lead))
	if u.lock.Name != "" {
		r.locks.held[r.lockClaim(u)] = u
	}
}

// askLock asks for a place in the next call. The holder is this workflow, whose
// later executions are the same one to the lock.
func (r *run) askLock(lock string, a *v1.AcquireRequest) {
	info := workflow.GetInfo(r.root)
	a.Holder, a.Execution, a.Asker = r.self, info.FirstRunID, info.OriginalRunID
	// A call may be sent twice as a whole: it must not give back what it asks for.
	r.locks.requests = slices.DeleteFunc(r.locks.requests, func(q *v1.LockRequest) bool {
		return q.GetFree() != nil && q.GetLock() == lock && q.GetFree().GetClaim() == a.GetClaim()
	})
	r.locks.requests = append(r.locks.requests, &v1.LockRequest{Lock: lock, Acquire: a})
}

func (r *run) freeLock(lock, claim string) {
	r.locks.requests = append(r.locks.requests, &v1.LockRequest{Lock: lock, Free: &v1.ReleaseRequest{Holder: r.self, Claim: claim}})
}

// askLocks sends what is to be asked of locks, in one call a round.
func (r *run) askLocks() {
	if len(r.locks.requests) == 0 {
		return
	}
	req := &v1.LockRequests{Requests: r.locks.requests}
	r.locks.requests = nil
	switch err := r.mustNow("ask for locks", names.AskLocksActivity, nil, req); {
	case errors.Is(err, errInterrupted):
		r.locks.requests = append(req.Requests, r.locks.requests...)
	case err != nil:
		workflow.GetLogger(r.ctx).Error("the locks could not be asked", "error", err)
	}
}

// receiveGrants applies what locks have granted.
func (r *run) receiveGrants() {
	told := workflow.GetSignalChannel(r.root, names.GrantedSignal)
	for told.Len() > 0 {
		var g v1.Granted
		if told.ReceiveAsync(&g) {
			r.granted(&g)
		}
	}
}

// granted takes an answer of a lock. They may come twice, and in another order.
func (r *run) granted(g *v1.Granted) {
	if g.GetClaim() == turnClaim {
		r.slotGranted(g)
		return
	}
	u := r.locks.wanted[g.GetClaim()]
	switch {
	case g.GetAsker() != workflow.GetInfo(r.root).OriginalRunID: // an execution before has asked, and taken it back
	case u == nil:
		if r.locks.held[g.GetClaim()] == nil && len(g.GetHolders()) == 0 {
			r.freeLock(g.GetLock(), g.GetClaim()) // this run does not want it any more
		}
	case len(g.GetHolders()) > 0:
		r.showWait(u, phrase.LockWait(lockName(g.GetLock()), g.GetHolders()))
	default:
		delete(r.locks.wanted, g.GetClaim())
		r.locks.held[g.GetClaim()] = u
		r.showWait(u, "")
		r.enter(u)
		r.wake()
	}
}

// showWait shows why the members of a unit wait.
func (r *run) showWait(u *unit, why string) {
	for _, m := range u.members {
		r.status.SetWaitReason(m, why)
	}
}

// lockName is the name of a lock as the definition has it.
func lockName(lock string) string {
	_, name, _ := strings.Cut(lock, ":")
	return name
}
