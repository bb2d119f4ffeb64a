package lock

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

func ask(holder, strategy string, limit, priority int32) *historyv1.AcquireRequest {
	return &historyv1.AcquireRequest{Holder: holder, Claim: "run", Limit: limit, Priority: priority, Strategy: strategy, Execution: "x"}
}

// said returns the table's answers, as "holder granted", "holder waits for a, b", "holder refused for a" and "holder never, because
// of a".
func said(t *table) string {
	var words []string
	for _, a := range t.replies {
		word := a.GetTo().GetHolder()
		switch g := a.GetGranted(); {
		case g.GetDeadlock():
			word += " never, because of " + strings.Join(g.GetHolders(), ", ")
		case g.GetRefused():
			word += " refused for " + strings.Join(g.GetHolders(), ", ")
		case len(g.GetHolders()) > 0:
			word += " waits for " + strings.Join(g.GetHolders(), ", ")
		default:
			word += " granted"
		}
		words = append(words, word)
	}
	t.replies = nil
	return strings.Join(words, "; ")
}

func TestLockTable(t *testing.T) {
	t.Parallel()
	type step struct {
		do   func(*table)
		want string
	}
	acquire := func(a *historyv1.AcquireRequest) func(*table) { return func(t *table) { t.acquire(a) } }
	free := func(holder string) func(*table) { return func(t *table) { t.free(holder, "run") } }
	for name, steps := range map[string][]step{
		"one after the other": {
			{acquire(ask("a", "", 1, 0)), "a granted"}, {acquire(ask("b", "queue", 1, 0)), "b waits for a"},
			{acquire(ask("c", "", 1, 0)), "c waits for a"}, {free("a"), "b granted"}, {free("b"), "c granted"}, {free("c"), ""},
		},
		"priority before age": {
			{acquire(ask("a", "", 1, 0)), "a granted"}, {acquire(ask("b", "", 1, 1)), "b waits for a"}, {acquire(ask("c", "", 1, 5)), "c waits for a"},
			{acquire(ask("d", "", 1, 5)), "d waits for a"}, {free("a"), "c granted"}, {free("c"), "d granted"}, {free("d"), "b granted"},
		},
		"three at once": {
			{acquire(ask("a", "", 3, 0)), "a granted"}, {acquire(ask("b", "", 3, 0)), "b granted"}, {acquire(ask("c", "", 3, 0)), "c granted"},
			{acquire(ask("d", "", 3, 0)), "d waits for a, b, c"}, {free("b"), "d granted"}, {acquire(ask("e", "", 5, 0)), "e waits for a, c, d"},
			{free("a"), "e granted"}, {acquire(ask("f", "", 1, 0)), "f waits for c, d, e"}, {acquire(ask("g", "", 9, 0)), "g waits for c, d, e"},
		},
		"the same again": {
			{acquire(ask("a", "", 1, 0)), "a granted"}, {acquire(ask("a", "", 1, 0)), "a granted"}, {acquire(ask("b", "fail", 1, 0)), "b refused for a"},
			{acquire(ask("c", "", 1, 0)), "c waits for a"}, {acquire(ask("c", "", 1, 0)), "c waits for a"}, {free("a"), "c granted"},
			{free("a"), ""}, {free("x"), ""},
		},
		"skip": {
			{acquire(ask("a", "skip", 1, 0)), "a granted"}, {acquire(ask("b", "skip", 1, 9)), "b refused for a"}, {free("a"), ""},
		},
		"replace": {
			{acquire(ask("a", "replace", 2, 0)), "a granted"}, {acquire(ask("b", "replace", 2, 0)), "b granted"},
			{acquire(ask("c", "replace", 2, 0)), "a refused for c; c waits for a, b"}, {acquire(ask("d", "replace", 2, 0)), "b refused for d; d waits for a, b"},
			{acquire(ask("e", "replace", 2, 0)), "c refused for e; e waits for a, b"}, {acquire(ask("a", "replace", 2, 0)), "a refused for "},
			{free("b"), "d granted"}, {free("a"), "e granted"},
		},
		"replace has room": {
			{acquire(ask("a", "replace", 1, 0)), "a granted"}, {free("a"), ""}, {acquire(ask("b", "replace", 1, 0)), "b granted"},
		},
		"withdrawn": {
			{acquire(ask("a", "", 1, 0)), "a granted"}, {acquire(ask("b", "", 1, 0)), "b waits for a"}, {acquire(ask("c", "", 1, 0)), "c waits for a"},
			{free("b"), ""}, {free("a"), "c granted"},
		},
		"one with a smaller limit is not overtaken": {
			{acquire(ask("a", "", 2, 0)), "a granted"}, {acquire(ask("b", "", 1, 0)), "b waits for a"}, {acquire(ask("c", "", 2, 0)), "c waits for a"},
			{free("a"), "b granted"}, {free("b"), "c granted"},
		},
		"another generation of a holder": {
			{acquire(ask("a", "", 1, 0)), "a granted"}, {acquire(ask("b", "", 1, 0)), "b waits for a"},
			{func(t *table) {
				again := ask("a", "", 1, 0)
				again.Execution = "y"
				t.acquire(again)
			}, "a granted"},
			{func(t *table) { t.gone(ask("a", "", 1, 0)) }, ""}, {free("a"), "b granted"},
			{func(t *table) { t.gone(ask("b", "", 1, 0)) }, ""}, {acquire(ask("c", "", 1, 0)), "c granted"},
		},
		"no holder": {{acquire(&historyv1.AcquireRequest{Claim: "run"}), ""}},
	} {
		t.Run(name, func(t *testing.T) {
			var table table
			for i, step := range steps {
				step.do(&table)
				if got := said(&table); got != step.want {
					t.Fatalf("step %d: %q, want %q", i, got, step.want)
				}
			}
		})
	}
}

// below returns a request of a run that ends before the given holders do.
func below(holder string, limit int32, above ...string) *historyv1.AcquireRequest {
	a := ask(holder, "", limit, 0)
	for _, h := range above {
		a.Above = append(a.Above, &historyv1.HeldLock{Holder: h, Claim: "run"})
	}
	return a
}

// TestWaitersThatWaitForEverAreRefused checks that a waiter is refused as soon as the holders above it, or above other waiters,
// can make no room, and that nothing else is refused.
func TestWaitersThatWaitForEverAreRefused(t *testing.T) {
	t.Parallel()
	strategy := func(a *historyv1.AcquireRequest, strategy string) *historyv1.AcquireRequest {
		a.Strategy = strategy
		return a
	}
	urgent := func(a *historyv1.AcquireRequest) *historyv1.AcquireRequest {
		a.Priority = 1
		return a
	}
	for name, requests := range map[string][]struct {
		request *historyv1.AcquireRequest
		want    string
	}{
		"held above":             {{ask("p", "", 1, 0), "p granted"}, {below("c", 1, "p"), "c never, because of p"}},
		"held by another":        {{ask("p", "", 1, 0), "p granted"}, {below("c", 1, "q"), "c waits for p"}},
		"there is a place":       {{ask("p", "", 2, 0), "p granted"}, {below("c", 2, "p"), "c granted"}, {below("d", 2, "p", "c"), "d never, because of p, c"}},
		"lower limit below":      {{ask("p", "", 2, 0), "p granted"}, {ask("x", "", 2, 0), "x granted"}, {below("c", 1, "p"), "c never, because of p"}},
		"lower limit above":      {{ask("p", "", 1, 0), "p granted"}, {below("c", 3, "p"), "c never, because of p"}},
		"behind another waiter":  {{ask("p", "", 1, 0), "p granted"}, {ask("x", "", 1, 0), "x waits for p"}, {below("c", 1, "p"), "c never, because of p"}},
		"another one makes room": {{ask("p", "", 2, 0), "p granted"}, {ask("x", "", 2, 0), "x granted"}, {below("c", 2, "p"), "c waits for p, x"}},
		"each waits for the other": {
			{ask("p", "", 2, 0), "p granted"}, {ask("q", "", 2, 0), "q granted"}, {below("c", 2, "p"), "c waits for p, q"},
			{below("d", 2, "q"), "d never, because of p, q"},
		},
		"an unrelated one is first": {
			{ask("p", "", 2, 0), "p granted"}, {ask("x", "", 1, 0), "x waits for p"}, {below("c", 2, "p"), "c never, because of p"},
		},
		"an urgent one comes first": {
			{ask("p", "", 2, 0), "p granted"}, {ask("q", "", 2, 0), "q granted"}, {below("c", 2, "p"), "c waits for p, q"},
			{urgent(ask("x", "", 1, 0)), "c never, because of p; x waits for p, q"},
		},
		"skip": {{ask("p", "", 1, 0), "p granted"}, {strategy(below("c", 1, "p"), v1.StrategySkip), "c refused for p"}},
		"replace": {
			{ask("p", "", 2, 0), "p granted"}, {ask("x", "", 2, 0), "x granted"},
			{strategy(below("c", 2, "p"), v1.StrategyReplace), "x refused for c; c waits for p, x"},
		},
		"replace what is above": {{ask("p", "", 1, 0), "p granted"}, {strategy(below("c", 1, "p"), v1.StrategyReplace), "c never, because of p"}},
		"above, and replaced": {
			{ask("p", "", 1, 0), "p granted"}, {ask("x", v1.StrategyReplace, 1, 0), "p refused for x; x waits for p"}, {below("c", 1, "p"), "c waits for p"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var table table
			for _, step := range requests {
				table.acquire(step.request)
				if got := said(&table); got != step.want {
					t.Errorf("%q, want %q", got, step.want)
				}
			}
		})
	}
}

// TestNothingWaitsForEver checks that every request is granted or refused, whatever runs start below others, as long as those end
// that nothing below them keeps open.
func TestNothingWaitsForEver(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var table table
		n := 0
		isLeaf := func(a *historyv1.AcquireRequest) bool {
			return !slices.ContainsFunc(slices.Concat(table.held, table.waiting), func(b *historyv1.AcquireRequest) bool { return isAbove(a, b) })
		}
		end := func() bool {
			i := slices.IndexFunc(table.held, isLeaf)
			if i >= 0 {
				table.free(table.held[i].GetHolder(), "run")
			}
			return i >= 0
		}
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				n++
				a := below(fmt.Sprint("r", n), int32(rapid.IntRange(1, 3).Draw(t, "limit")))
				a.Priority = int32(rapid.IntRange(0, 1).Draw(t, "priority"))
				if k := rapid.IntRange(-1, len(table.held)-1).Draw(t, "above"); k >= 0 {
					h := table.held[k]
					a.Above = append(slices.Clone(h.GetAbove()), &historyv1.HeldLock{Holder: h.GetHolder(), Claim: h.GetClaim()})
				}
				table.acquire(a)
			},
			"end": func(*rapid.T) { end() },
		})
		for end() {
		}
		if !table.empty() {
			t.Fatalf("%d hold the lock and %d wait for ever", len(table.held), len(table.waiting))
		}
	})
}

func TestHolderName(t *testing.T) {
	t.Parallel()
	for claim, want := range map[string]string{"run": "ci-1", "build#3": "build of ci-1", "each[2]#1": "each[2] of ci-1"} {
		if got := holderName(&historyv1.AcquireRequest{Holder: "ci-1", Claim: claim}); got != want {
			t.Errorf("%s: %q, want %q", claim, got, want)
		}
	}
}

// Whatever is requested in whatever order, no more claims hold the lock than allowed, no claim waits without need, the order is
// kept, and every waiter gets the lock in the end.
func TestLockTableKeepsItsLimit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := int32(rapid.IntRange(1, 3).Draw(t, "limit"))
		var table table
		granted, waiting := map[string]bool{}, []*historyv1.AcquireRequest{}
		drop := func(holder string) {
			delete(granted, holder)
			waiting = slices.DeleteFunc(waiting, func(a *historyv1.AcquireRequest) bool { return a.GetHolder() == holder })
		}
		hear := func() {
			for _, a := range table.replies {
				holder := a.GetTo().GetHolder()
				switch g := a.GetGranted(); {
				case g.GetRefused() && !granted[holder]:
					drop(holder)
				case !g.GetRefused() && len(g.GetHolders()) == 0 && !granted[holder]:
					for _, w := range waiting {
						if w.GetPriority() > a.GetTo().GetPriority() {
							t.Fatalf("%s was served before %s", holder, w.GetHolder())
						} else if w.GetHolder() == holder {
							break
						} else if w.GetPriority() == a.GetTo().GetPriority() {
							t.Fatalf("%s was served before the older %s", holder, w.GetHolder())
						}
					}
					drop(holder)
					granted[holder] = true
				}
			}
			table.replies = nil
			if len(granted) != len(table.held) || len(waiting) != len(table.waiting) || len(granted) > int(limit) {
				t.Fatalf("%d hold it and %d wait, as told; %d and %d as kept; the limit is %d",
					len(granted), len(waiting), len(table.held), len(table.waiting), limit)
			}
			if len(waiting) > 0 && len(granted) < int(limit) {
				t.Fatalf("%d wait and %d hold it", len(waiting), len(granted))
			}
		}
		holder := rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("r%d", rapid.IntRange(0, 9).Draw(t, "n")) })
		t.Repeat(map[string]func(*rapid.T){
			"acquire": func(t *rapid.T) {
				a := ask(holder.Draw(t, "holder"), rapid.SampledFrom([]string{"", "queue", "replace", "skip", "fail"}).Draw(t, "strategy"),
					limit, int32(rapid.IntRange(0, 2).Draw(t, "priority")))
				if !granted[a.GetHolder()] && !slices.ContainsFunc(waiting, func(w *historyv1.AcquireRequest) bool { return w.GetHolder() == a.GetHolder() }) {
					waiting = append(waiting, a)
				}
				table.acquire(a)
				hear()
			},
			"free": func(t *rapid.T) {
				h := holder.Draw(t, "holder")
				drop(h)
				table.free(h, "run")
				hear()
			},
			"gone": func(t *rapid.T) {
				h := holder.Draw(t, "holder")
				drop(h)
				table.gone(ask(h, "", 0, 0))
				hear()
			},
		})
		for len(table.held) > 0 {
			h := table.held[0].GetHolder()
			drop(h)
			table.free(h, "run")
			hear()
		}
		if !table.empty() || len(waiting) > 0 {
			t.Fatalf("%d still wait", len(table.waiting))
		}
	})
}

// TestLowestLimitOfAllHoldersApplies checks that a claim with a higher limit does not join a holder with a lower one.
func TestLowestLimitOfAllHoldersApplies(t *testing.T) {
	t.Parallel()
	var k table
	k.acquire(&historyv1.AcquireRequest{Holder: "one", Claim: "a", Limit: 1})
	for _, claim := range []string{"a", "b", "c"} {
		k.acquire(&historyv1.AcquireRequest{Holder: "three", Claim: claim, Limit: 3})
	}
	if len(k.held) != 1 || len(k.waiting) != 3 {
		t.Fatalf("%d hold the lock beside the one that allows no other", len(k.held)-1)
	}
	if k.free("one", "a"); len(k.held) != 3 || len(k.waiting) != 0 {
		t.Errorf("%d of three hold it afterwards", len(k.held))
	}
}
