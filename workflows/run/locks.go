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

// turnClaim is the claim under which the run itself holds its run slot.
const turnClaim = "run"

// locks holds the lock requests of a run. A claim belongs to the lead of a unit or to the run itself.
type locks struct {
	requests []*v1.LockRequest // for the next call, in order
	wanted   map[string]*unit  // units that wait for their lock, by claim
	held     map[string]*unit  // units that hold their lock, by claim
	runSlot  bool              // the run holds its run slot
}

// lockClaim returns the claim under which a unit holds its lock.
func (r *run) lockClaim(u *unit) string { return names.AttemptID(r.core.Name(u.lead), u.claim) }

// acquire requests the lock of a unit. The unit enters when the lock is granted.
func (r *run) acquire(u *unit) {
	claim := r.lockClaim(u)
	r.locks.wanted[claim] = u
	r.askLock(u.lock.Name, &v1.AcquireRequest{
		Claim: claim, Limit: int32(u.lock.Limit), Priority: r.core.Definition(u.lead).GetPriority(),
	})
}

// free releases the lock of a unit or withdraws the request for it.
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

// waitsForLock reports whether a unit has requested its lock and does not hold it yet.
func (r *run) waitsForLock(u *unit) bool {
	return u.lock.Name != "" && r.locks.wanted[r.lockClaim(u)] == u
}

// track registers a unit that was in flight in the previous execution, with the lock that it holds.
func (r *run) track(u *unit) {
	for _, m := range u.members {
		r.units[m] = u
	}
	r.admission.UnderWay(r.admissible(u.lead))
	if u.lock.Name != "" {
		r.locks.held[r.lockClaim(u)] = u
	}
}

// askLock adds a lock request to the next call. The holder is this workflow; to the lock, its later executions are the same
// holder.
func (r *run) askLock(lock string, a *v1.AcquireRequest) {
	info := workflow.GetInfo(r.root)
	a.Holder, a.Execution, a.Asker = r.self, info.FirstRunID, info.OriginalRunID
	// A call may be sent twice as a whole, so it must not release a lock that it also requests.
	r.locks.requests = slices.DeleteFunc(r.locks.requests, func(q *v1.LockRequest) bool {
		return q.GetFree() != nil && q.GetLock() == lock && q.GetFree().GetClaim() == a.GetClaim()
	})
	r.locks.requests = append(r.locks.requests, &v1.LockRequest{Lock: lock, Acquire: a})
}

func (r *run) freeLock(lock, claim string) {
	r.locks.requests = append(r.locks.requests, &v1.LockRequest{Lock: lock, Free: &v1.ReleaseRequest{Holder: r.self, Claim: claim}})
}

// askLocks sends the queued lock requests, in one call a round.
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

// receiveGrants applies the grants that locks have signalled.
func (r *run) receiveGrants() {
	told := workflow.GetSignalChannel(r.root, names.GrantedSignal)
	for told.Len() > 0 {
		var g v1.Granted
		if told.ReceiveAsync(&g) {
			r.granted(&g)
		}
	}
}

// granted applies an answer of a lock. Answers may arrive twice and out of order.
func (r *run) granted(g *v1.Granted) {
	if g.GetClaim() == turnClaim {
		r.slotGranted(g)
		return
	}
	u := r.locks.wanted[g.GetClaim()]
	switch {
	case g.GetAsker() != workflow.GetInfo(r.root).OriginalRunID: // a previous execution made the request and has withdrawn it
	case u == nil:
		if r.locks.held[g.GetClaim()] == nil && len(g.GetHolders()) == 0 {
			r.freeLock(g.GetLock(), g.GetClaim()) // the run no longer needs the lock
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

// lockName returns the name of a lock as written in the definition.
func lockName(lock string) string {
	_, name, _ := strings.Cut(lock, ":")
	return name
}
