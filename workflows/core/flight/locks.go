package flight

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/names"
	"switchyard/workflows/phrase"
)

// slotClaim is the claim under which the run itself holds its run slot. All other claims are those of leads.
const slotClaim = "run"

// lockClaim returns the claim under which a unit holds its lock.
func (s *State) lockClaim(u *Unit) string { return names.AttemptID(s.core.Name(u.Lead), u.Claim) }

// acquire requests the lock of a unit. The unit enters when the lock is granted.
func (s *State) acquire(u *Unit) {
	u.Phase = Locking
	s.askLock(names.TaskLock(u.lock.Name), &historyv1.AcquireRequest{
		Claim: s.lockClaim(u), Limit: int32(u.lock.Limit), Priority: s.core.Definition(u.Lead).GetPriority(),
	})
}

// free releases the lock of a unit in flight or withdraws the request for it.
func (s *State) free(u *Unit) {
	if u.lock.Name != "" && u.Phase != Gone {
		s.freeLock(names.TaskLock(u.lock.Name), s.lockClaim(u))
	}
}

// askLock adds a lock request to the next call. The holder is this workflow; to the lock, its later executions are the same
// holder.
func (s *State) askLock(lock string, a *historyv1.AcquireRequest) {
	a.Holder, a.Execution, a.Asker = s.Self, s.First, s.Original
	for _, held := range s.Input.GetHeldLocks() {
		if held.GetLock() == lock {
			a.Above = append(a.Above, held)
		}
	}
	// A call may be sent twice as a whole, so it must not release a lock that it also requests.
	s.lockRequests = slices.DeleteFunc(s.lockRequests, func(q *historyv1.LockRequest) bool {
		return q.GetFree() != nil && q.GetLock() == lock && q.GetFree().GetClaim() == a.GetClaim()
	})
	s.lockRequests = append(s.lockRequests, &historyv1.LockRequest{Lock: lock, Acquire: a})
}

// freeLock adds the release of a lock, or of the request for it, to the next call.
func (s *State) freeLock(lock, claim string) {
	s.lockRequests = append(s.lockRequests, &historyv1.LockRequest{Lock: lock, Free: &historyv1.ReleaseRequest{Holder: s.Self, Claim: claim}})
}

// HasLockRequests reports whether requests wait for the next call.
func (s *State) HasLockRequests() bool { return len(s.lockRequests) > 0 }

// TakeLockRequests removes the requests for the next call and returns them.
func (s *State) TakeLockRequests() []*historyv1.LockRequest {
	requests := s.lockRequests
	s.lockRequests = nil
	return requests
}

// PutBackLockRequests makes requests that could not be sent the first of the next call.
func (s *State) PutBackLockRequests(requests []*historyv1.LockRequest) {
	s.lockRequests = append(requests, s.lockRequests...)
}

// Granted applies an answer of a lock. Answers may arrive twice and out of order.
func (s *State) Granted(g *historyv1.Granted, now time.Time) []Effect {
	if g.GetClaim() == slotClaim {
		s.slotGranted(g)
		return s.take()
	}
	u := s.unitOfLock(g.GetClaim())
	switch {
	case g.GetAsker() != s.Original: // a previous execution made the request and has withdrawn it
	case u == nil:
		if len(g.GetHolders()) == 0 {
			s.freeLock(g.GetLock(), g.GetClaim()) // the run no longer needs the lock
		}
	case u.Phase != Locking: // it holds the lock
	case g.GetDeadlock():
		u.lock.Name = "" // it is not requested any more
		s.leave(u)
		text := phrase.Deadlock("the lock "+lockName(g.GetLock()), g.GetHolders(), "use another lock here, or none for the tasks that start the run")
		for _, m := range u.Members {
			s.raise(dag.GaveUp{Task: m, Claim: s.claimOf(m), Reason: v1.ReasonDeadlock, Error: text})
		}
	case len(g.GetHolders()) > 0:
		s.showWait(u, phrase.LockWait(lockName(g.GetLock()), g.GetHolders()))
	default:
		s.showWait(u, "")
		s.enter(u, now)
		s.do(Wake{})
	}
	return s.take()
}

// unitOfLock returns the unit that has requested or holds a lock under a claim, or nil if there is none.
func (s *State) unitOfLock(claim string) *Unit {
	name, number, _ := names.ParseAttemptID(claim)
	if i, ok := s.core.Index(name); ok {
		if u := s.units[i]; u != nil && u.Lead == i && u.Claim == number && u.lock.Name != "" {
			return u
		}
	}
	return nil
}

// showWait shows why the members of a unit wait.
func (s *State) showWait(u *Unit, why string) {
	for _, m := range u.Members {
		if s.records.Of(m).Wait != why {
			s.records.At(m).Wait = why
			s.do(Show{Task: m})
		}
	}
}

// HeldBy returns the locks that are held above the run of a unit: those above this run, its run slot, and the lock of the unit.
// Of no unit, it returns those that are held above a partition.
func (s *State) HeldBy(u *Unit) []*historyv1.HeldLock {
	held := slices.Clone(s.Input.GetHeldLocks())
	if s.hasSlot {
		held = append(held, &historyv1.HeldLock{Lock: s.slotLock(), Holder: s.Self, Claim: slotClaim})
	}
	if u != nil && u.lock.Name != "" {
		held = append(held, &historyv1.HeldLock{Lock: names.TaskLock(u.lock.Name), Holder: s.Self, Claim: s.lockClaim(u)})
	}
	return held
}

// lockName returns the name of a lock as written in the definition.
func lockName(lock string) string {
	_, name, _ := strings.Cut(lock, ":")
	return name
}

// slotLock returns the lock that limits the open runs of the workflow, or "" if there is no limit.
func (s *State) slotLock() string {
	if s.Input.GetPartition() != nil || s.Input.GetDefinition().GetConcurrency().GetMaxRuns() <= 0 {
		return ""
	}
	return names.RunLock(s.Input.GetDefinition().GetName())
}

// AskSlot requests a run slot. It returns false if the runs of the workflow have no limit.
func (s *State) AskSlot() bool {
	lock := s.slotLock()
	if lock == "" {
		return false
	}
	c := s.Input.GetDefinition().GetConcurrency()
	s.askLock(lock, &historyv1.AcquireRequest{Claim: slotClaim, Limit: c.GetMaxRuns(), Strategy: c.GetStrategy()})
	return true
}

// RestoreSlot registers the run slot that a previous execution acquired, if the run needs one.
func (s *State) RestoreSlot() { s.hasSlot = s.slotLock() != "" }

// HasSlot reports whether the run holds its run slot.
func (s *State) HasSlot() bool { return s.hasSlot }

// AwaitsSlot reports whether other runs hold the run slot for which the run waits.
func (s *State) AwaitsSlot() bool { return s.awaitsSlot }

// FreeSlot releases the run slot, if the run needs one.
func (s *State) FreeSlot() {
	if lock := s.slotLock(); lock != "" {
		s.freeLock(lock, slotClaim)
	}
}

// slotGranted applies the reply to a request for a run slot: granted, taken by other runs, or refused.
func (s *State) slotGranted(g *historyv1.Granted) {
	switch {
	case g.GetDeadlock():
		name := s.Input.GetDefinition().GetName()
		s.raise(dag.Abort{
			State: v1.RunFailed, Reason: v1.ReasonDeadlock,
			Error: phrase.Deadlock("the place of a run of "+name, g.GetHolders(), "raise concurrency.maxRuns, or start no run of "+name+" from within another one"),
		})
	case g.GetRefused():
		s.raise(s.slotEnd(strings.Join(g.GetHolders(), ", ")))
	case len(g.GetHolders()) == 0:
		s.hasSlot, s.awaitsSlot = true, false
		s.do(ShowSlot{})
	case !s.hasSlot:
		s.awaitsSlot = true
		s.do(ShowSlot{g.GetHolders()})
	}
}

// slotEnd returns the end of a run that gets no run slot or has lost it.
func (s *State) slotEnd(others string) dag.Abort {
	c := s.Input.GetDefinition().GetConcurrency()
	end := dag.Abort{State: v1.RunCancelled, Reason: v1.ReasonConcurrency}
	if s.hasSlot || cmp.Or(c.GetStrategy(), v1.StrategyQueue) == v1.StrategyQueue || c.GetStrategy() == v1.StrategyReplace {
		end.Error = "replaced by " + others
		return end
	}
	if c.GetStrategy() == v1.StrategyFail {
		end.State = v1.RunRejected
	}
	end.Error = fmt.Sprintf("open already: %s; the workflow's concurrency.maxRuns is %d", others, c.GetMaxRuns())
	return end
}
