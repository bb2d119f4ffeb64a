package lock

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// maxHolders is the most holders that are named to a waiter.
const maxHolders = 3

// table records the holders of a lock and the waiters for it, and collects the answers that are due. A holder that must make
// room for another claim is notified, and keeps its place until it releases it.
type table struct {
	held    []*historyv1.AcquireRequest // longest-held first
	waiting []*historyv1.AcquireRequest // by priority, then by age
	replies []*historyv1.LockAnswer     // due answers, in order
}

func sameClaim(a *historyv1.AcquireRequest, holder, claim string) bool {
	return a.GetHolder() == holder && a.GetClaim() == claim
}

func find(list []*historyv1.AcquireRequest, holder, claim string) int {
	return slices.IndexFunc(list, func(a *historyv1.AcquireRequest) bool { return sameClaim(a, holder, claim) })
}

// places returns how many claims may hold the lock under this claim's limit.
func places(a *historyv1.AcquireRequest) int { return int(max(a.GetLimit(), 1)) }

// placesOf returns how many claims may hold the lock if a holds it beside others. The lowest of their limits applies, so that no
// holder has more others beside it than its own limit allows.
func placesOf(others []*historyv1.AcquireRequest, a *historyv1.AcquireRequest) int {
	least := places(a)
	for _, h := range others {
		least = min(least, places(h))
	}
	return least
}

// isAbove reports whether the first claim is held until the run of the second one has ended.
func isAbove(h, a *historyv1.AcquireRequest) bool {
	return slices.ContainsFunc(a.GetAbove(), func(l *historyv1.HeldLock) bool { return sameClaim(h, l.GetHolder(), l.GetClaim()) })
}

func (t *table) empty() bool { return len(t.held) == 0 && len(t.waiting) == 0 }

func (t *table) answer(to *historyv1.AcquireRequest, refused bool, holders ...string) {
	t.replies = append(t.replies, &historyv1.LockAnswer{
		To: proto.CloneOf(to), Granted: &historyv1.Granted{Claim: to.GetClaim(), Asker: to.GetAsker(), Refused: refused, Holders: holders},
	})
}

// acquire requests a place. A known claim gets the same answer as before. If it comes from another execution of its holder,
// that execution becomes the owner of the claim.
func (t *table) acquire(a *historyv1.AcquireRequest) {
	if a.GetHolder() == "" {
		return
	}
	if i := find(t.held, a.GetHolder(), a.GetClaim()); i >= 0 {
		t.held[i].Execution, t.held[i].Asker = a.GetExecution(), a.GetAsker()
		t.answer(t.held[i], t.held[i].GetReplaced())
		return
	}
	if i := find(t.waiting, a.GetHolder(), a.GetClaim()); i >= 0 {
		t.waiting[i].Execution, t.waiting[i].Asker = a.GetExecution(), a.GetAsker()
		t.answer(t.waiting[i], false, namesOf(t.held)...)
		return
	}
	at := slices.IndexFunc(t.waiting, func(w *historyv1.AcquireRequest) bool { return w.GetPriority() < a.GetPriority() })
	if at < 0 {
		at = len(t.waiting)
	}
	if (a.GetStrategy() == v1.StrategySkip || a.GetStrategy() == v1.StrategyFail) && (at > 0 || !t.hasPlace(a)) {
		t.answer(a, true, namesOf(t.held)...)
		return
	}
	t.waiting = slices.Insert(t.waiting, at, a)
	t.serve()
	if at = find(t.waiting, a.GetHolder(), a.GetClaim()); at < 0 {
		return
	}
	if a.GetStrategy() == v1.StrategyReplace {
		t.replace(a, at)
	}
	t.answer(a, false, namesOf(t.held)...)
}

// replace makes the oldest holders give way to a claim that waits behind `ahead` others. Holders above the claim keep their
// places, because the claim would end with them.
func (t *table) replace(a *historyv1.AcquireRequest, ahead int) {
	staying := 0
	for _, h := range t.held {
		if !h.GetReplaced() {
			staying++
		}
	}
	for i := 0; staying+ahead >= places(a); {
		for i < len(t.held) && (t.held[i].GetReplaced() || isAbove(t.held[i], a)) {
			i++
		}
		if i < len(t.held) {
			t.held[i].Replaced = true
			t.answer(t.held[i], true, holderName(a))
			staying--
			continue
		}
		// All holders are leaving already, so the waiters ahead are dropped.
		t.answer(t.waiting[0], true, holderName(a))
		t.waiting = t.waiting[1:]
		ahead--
	}
}

// free removes a claim, whether it holds a place or waits.
func (t *table) free(holder, claim string) {
	if i := find(t.held, holder, claim); i >= 0 {
		t.held = slices.Delete(t.held, i, i+1)
	}
	if i := find(t.waiting, holder, claim); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	t.serve()
}

// gone removes a claim whose holder has ended, unless another execution of the holder owns the claim now.
func (t *table) gone(a *historyv1.AcquireRequest) {
	for _, list := range [][]*historyv1.AcquireRequest{t.held, t.waiting} {
		if i := find(list, a.GetHolder(), a.GetClaim()); i >= 0 && list[i].GetExecution() == a.GetExecution() {
			t.free(a.GetHolder(), a.GetClaim())
			return
		}
	}
}

// leave removes a waiting claim whose holder has ended. It returns false if the claim already holds a place.
func (t *table) leave(a *historyv1.AcquireRequest) bool {
	if i := find(t.held, a.GetHolder(), a.GetClaim()); i >= 0 {
		return false
	}
	t.gone(a)
	return true
}

// hasPlace reports whether a claim may hold the lock beside the present holders.
func (t *table) hasPlace(a *historyv1.AcquireRequest) bool { return len(t.held) < placesOf(t.held, a) }

// serve gives free places to waiters, and refuses those that would wait for ever. No waiter overtakes another: the limit of the
// first one applies, and the others wait behind it.
func (t *table) serve() {
	for len(t.waiting) > 0 {
		if a := t.waiting[0]; t.hasPlace(a) {
			t.waiting = t.waiting[1:]
			t.held = append(t.held, a)
			t.answer(a, false)
			continue
		}
		i, holders := t.deadlock()
		if i < 0 {
			return
		}
		a := t.waiting[i]
		t.waiting = slices.Delete(t.waiting, i, i+1)
		t.answer(a, true, namesOf(holders)...)
		t.replies[len(t.replies)-1].Granted.Deadlock = true
	}
}

// deadlock returns a waiter to refuse, and the holders that would keep their places while it waits. It returns -1 if every
// waiter can get a place. A waiter waits for ever if the holders above it leave no place. So do all waiters if the holders above
// any of them leave no place for the first one; then the last of those with a holder above them is refused.
func (t *table) deadlock() (int, []*historyv1.AcquireRequest) {
	var staying []*historyv1.AcquireRequest // the holders above any waiter
	last := -1
	for i, a := range t.waiting {
		if len(a.GetAbove()) == 0 {
			continue
		}
		var above []*historyv1.AcquireRequest
		for _, h := range t.held {
			if isAbove(h, a) && !h.GetReplaced() {
				above = append(above, h)
				if !slices.Contains(staying, h) {
					staying = append(staying, h)
				}
			}
		}
		switch {
		case len(above) >= placesOf(above, a):
			return i, above
		case len(above) > 0:
			last = i
		}
	}
	if last >= 0 && len(staying) >= placesOf(staying, t.waiting[0]) {
		return last, staying
	}
	return -1, nil
}

// namesOf returns the names of holders, for people.
func namesOf(holders []*historyv1.AcquireRequest) []string {
	var list []string
	for i, h := range holders {
		if i == maxHolders {
			list = append(list, fmt.Sprintf("%d more", len(holders)-i))
			break
		}
		list = append(list, holderName(h))
	}
	return list
}

func holderName(a *historyv1.AcquireRequest) string {
	if task, _, ok := names.ParseAttemptID(a.GetClaim()); ok {
		return task + " of " + a.GetHolder()
	}
	return a.GetHolder()
}
