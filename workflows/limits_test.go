package workflows

import "testing"

func TestHistoryBounds(t *testing.T) {
	t.Parallel()
	l := Limits{}.withDefaults()
	if l.soft() != (historySize{10_000, 12 << 20}) || l.hard() != (historySize{30_000, 24 << 20}) || l.last() != (historySize{45_000, 32 << 20}) {
		t.Errorf("the bounds are %v, %v and %v", l.soft(), l.hard(), l.last())
	}
	bound := historySize{100, 1000}
	for _, size := range []historySize{{101, 0}, {0, 1001}, {101, 1001}} {
		if !size.exceeds(bound) {
			t.Errorf("%v does not exceed %v", size, bound)
		}
	}
	for _, size := range []historySize{{}, {100, 1000}} {
		if size.exceeds(bound) {
			t.Errorf("%v exceeds %v", size, bound)
		}
	}
	step, last := historySize{10, 100}, historySize{150, 1500}
	for _, test := range []struct{ history, want historySize }{
		{historySize{101, 20}, historySize{111, 1000}},  // only the events have grown
		{historySize{20, 1001}, historySize{100, 1101}}, // only the bytes have
		{historySize{130, 1300}, historySize{140, 1400}},
		{historySize{145, 1450}, last},
		{historySize{2000, 9000}, last},
	} {
		if got := bound.raised(test.history, step, last); got != test.want {
			t.Errorf("after %v the bound is %v, want %v", test.history, got, test.want)
		}
	}
}

// A run whose attempts cannot be detached gets to the last bound in a few steps, and no further.
func TestHardBoundReachesTheLast(t *testing.T) {
	t.Parallel()
	l := Limits{}.withDefaults()
	bound, rounds := l.hard(), 0
	for ; bound != l.last(); rounds++ {
		if rounds > historySteps {
			t.Fatalf("the bound is %v after %d rounds", bound, rounds)
		}
		next := bound.raised(historySize{bound.events + 1, bound.bytes + 1}, l.step(), l.last())
		if !next.exceeds(bound) || next.exceeds(l.last()) {
			t.Fatalf("the bound moves from %v to %v", bound, next)
		}
		bound = next
	}
	if bound.raised(historySize{60_000, 60 << 20}, l.step(), l.last()) != l.last() {
		t.Error("it moves beyond the last")
	}
}
