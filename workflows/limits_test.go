package workflows

import "testing"

// The history of a run is full early enough for all that is in flight, but not for executions that began with an earlier
// release: their histories hold no word of it.
func TestHistoryIsFull(t *testing.T) {
	t.Parallel()
	l := Limits{}.withDefaults()
	if most := l.HistoryEvents + 3*l.InFlight; most > 10_000 {
		t.Errorf("a history may grow to %d events", most)
	}
	yes, no := func() bool { return true }, func() bool { return false }
	for _, c := range []struct {
		events            int
		sooner, handsOver func() bool
		want              bool
	}{
		{7000, nil, nil, false},
		{7001, yes, nil, true},
		{7001, no, nil, false},
		{10_000, no, nil, false},
		{10_001, nil, yes, true},
		{10_001, nil, no, false},
		{35_001, nil, no, true},
	} {
		if got := l.full(c.events, c.sooner, c.handsOver); got != c.want {
			t.Errorf("%d events: full %v", c.events, got)
		}
	}
	if l := (Limits{HistoryEvents: 60}).withDefaults(); !l.full(61, nil, yes) {
		t.Error("other limits count for all executions")
	}
}
