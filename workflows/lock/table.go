package lock

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// maxHolders is how many holders are named to who waits.
const maxHolders = 3

// table holds who has a lock and who waits for it, and collects the answers that are due. A claim that is to make place
// for another one is answered so, and holds its place until it is given back.
type table struct {
	held    []*v1.AcquireRequest // the longest first
	waiting []*v1.AcquireRequest // by priority, then by age
	replies []*v1.LockAnswer     // that are due, in order
}

func sameClaim(a *v1.AcquireRequest, holder, claim string) bool {
	return a.GetHolder() == holder && a.GetClaim() == claim
}

func find(list []*v1.AcquireRequest, holder, claim string) int {
	return slices.IndexFunc(list, func(a *v1.AcquireRequest) bool { return sameClaim(a, holder, claim) })
}

// places is how many may hold the lock together with the claim.
func places(a *v1.AcquireRequest) int { return int(max(a.GetLimit(), 1)) }

func (t *table) empty() bool { return len(t.held) == 0 && len(t.waiting) == 0 }

func (t *table) answer(to *v1.AcquireRequest, refused bool, holders ...string) {
	t.replies = append(t.replies, &v1.LockAnswer{
		To: proto.CloneOf(to), Granted: &v1.Granted{Claim: to.GetClaim(), Asker: to.GetAsker(), Refused: refused, Holders: holders},
	})
}

// acquire asks for a place. A claim that is known has the answer that it had
// before; when it comes from another execution of its holder, that one has it now.
func (t *table) acquire(a *v1.AcquireRequest) {
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
		t.answer(t.waiting[i], false, t.holders()...)
		return
	}
	at := slices.IndexFunc(t.waiting, func(w *v1.AcquireRequest) bool { return w.GetPriority() < a.GetPriority() })
	if at < 0 {
		at = len(t.waiting)
	}
	t.waiting = slices.Insert(t.waiting, at, a)
	t.serve()
	if find(t.waiting, a.GetHolder(), a.GetClaim()) < 0 {
		return
	}
	switch a.GetStrategy() {
	case v1.StrategySkip, v1.StrategyFail:
		t.waiting = slices.Delete(t.waiting, at, at+1)
		t.answer(a, true, t.holders()...)
	case v1.StrategyReplace:
		t.replace(a, at)
		t.answer(a, false, t.holders()...)
	default:
		t.answer(a, false, t.holders()...)
	}
}

// replace has the oldest ones make place for a claim that waits behind `ahead` others.
func (t *table) replace(a *v1.AcquireRequest, ahead int) {
	staying := 0
	for _, h := range t.held {
		if !h.GetReplaced() {
			staying++
		}
	}
	for i := 0; staying+ahead >= places(a); {
		for i < len(t.held) && t.held[i].GetReplaced() {
			i++
		}
		if i < len(t.held) {
			t.held[i].Replaced = true
			t.answer(t.held[i], true, holderName(a))
			staying--
			continue
		}
		// All that hold it leave already: who waits ahead is not needed any more.
		t.answer(t.waiting[0], true, holderName(a))
		t.waiting = t.waiting[1:]
		ahead--
	}
}

// free takes a claim out, wherever it is.
func (t *table) free(holder, claim string) {
	if i := find(t.held, holder, claim); i >= 0 {
		t.held = slices.Delete(t.held, i, i+1)
	}
	if i := find(t.waiting, holder, claim); i >= 0 {
		t.waiting = slices.Delete(t.waiting, i, i+1)
	}
	t.serve()
}

// gone takes a claim out whose holder is no more, unless another execution of the
// holder has it now.
func (t *table) gone(a *v1.AcquireRequest) {
	for _, list := range [][]*v1.AcquireRequest{t.held, t.waiting} {
		if i := find(list, a.GetHolder(), a.GetClaim()); i >= 0 && list[i].GetExecution() == a.GetExecution() {
			t.free(a.GetHolder(), a.GetClaim())
			return
		}
	}
}

// leave takes a claim out that waits and whose holder is no more. It is false if the claim holds a place.
func (t *table) leave(a *v1.AcquireRequest) bool {
	if i := find(t.held, a.GetHolder(), a.GetClaim()); i >= 0 {
		return false
	}
	t.gone(a)
	return true
}

// serve gives places to those that wait. None overtakes: the first one goes by
// its own limit, and the others wait behind it.
func (t *table) serve() {
	for len(t.waiting) > 0 && len(t.held) < places(t.waiting[0]) {
		a := t.waiting[0]
		t.waiting = t.waiting[1:]
		t.held = append(t.held, a)
		t.answer(a, false)
	}
}

// holders names who holds the lock, for people.
func (t *table) holders() []string {
	var list []string
	for i, h := range t.held {
		if i == maxHolders {
			list = append(list, fmt.Sprintf("%d more", len(t.held)-i))
			break
		}
		list = append(list, holderName(h))
	}
	return list
}

func holderName(a *v1.AcquireRequest) string {
	if task, _, ok := names.ParseAttemptID(a.GetClaim()); ok {
		return task + " of " + a.GetHolder()
	}
	return a.GetHolder()
}
