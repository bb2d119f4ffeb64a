package limits

import "testing"

func TestHistoryBounds(t *testing.T) {
	t.Parallel()
	l := Run{}.WithDefaults()
	if l.Soft() != (HistorySize{10_000, 12 << 20, 1000, 5000}) || l.Hard() != (HistorySize{30_000, 24 << 20, 1500, 8000}) || l.Last() != (HistorySize{45_000, 32 << 20, 1900, 9500}) {
		t.Errorf("the bounds are %v, %v and %v", l.Soft(), l.Hard(), l.Last())
	}
	bound := HistorySize{100, 1000, 50, 500}
	for _, size := range []HistorySize{{101, 0, 0, 0}, {0, 1001, 0, 0}, {101, 1001, 0, 0}, {0, 0, 51, 0}, {0, 0, 0, 501}} {
		if !size.Exceeds(bound) {
			t.Errorf("%v does not exceed %v", size, bound)
		}
	}
	for _, size := range []HistorySize{{}, {100, 1000, 50, 500}} {
		if size.Exceeds(bound) {
			t.Errorf("%v exceeds %v", size, bound)
		}
	}
	step, last := HistorySize{10, 100, 5, 50}, HistorySize{150, 1500, 75, 750}
	for _, test := range []struct{ history, want HistorySize }{
		{HistorySize{101, 20, 0, 0}, HistorySize{111, 1000, 50, 500}},  // only the events have grown
		{HistorySize{20, 1001, 0, 0}, HistorySize{100, 1101, 50, 500}}, // only the bytes have grown
		{HistorySize{0, 0, 60, 0}, HistorySize{100, 1000, 65, 500}},    // only the updates have grown
		{HistorySize{0, 0, 0, 501}, HistorySize{100, 1000, 50, 551}},   // only the signals have grown
		{HistorySize{130, 1300, 65, 650}, HistorySize{140, 1400, 70, 700}},
		{HistorySize{145, 1450, 74, 740}, last},
		{HistorySize{2000, 9000, 2000, 9000}, last},
	} {
		if got := bound.Raised(test.history, step, last); got != test.want {
			t.Errorf("after %v the bound is %v, want %v", test.history, got, test.want)
		}
	}
}

// A run whose attempts cannot be detached reaches the last limit in a few steps and stops there.
func TestHardBoundDoesNotExceedTheLastBound(t *testing.T) {
	t.Parallel()
	l := Run{}.WithDefaults()
	bound, rounds := l.Hard(), 0
	for ; bound != l.Last(); rounds++ {
		if rounds > historySteps {
			t.Fatalf("the bound is %v after %d rounds", bound, rounds)
		}
		next := bound.Raised(HistorySize{bound.Events + 1, bound.Bytes + 1, bound.Updates + 1, bound.Signals + 1}, l.Step(), l.Last())
		if !next.Exceeds(bound) || next.Exceeds(l.Last()) {
			t.Fatalf("the bound moves from %v to %v", bound, next)
		}
		bound = next
	}
	if bound.Raised(HistorySize{60_000, 60 << 20, 2000, 10_000}, l.Step(), l.Last()) != l.Last() {
		t.Error("it moves beyond the last")
	}
}
