package timeline

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAxisHasFewTicksAndCoversItsRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		took := time.Duration(rapid.Int64Range(0, int64(400*24*time.Hour)).Draw(t, "took")) >> rapid.IntRange(0, 30).Draw(t, "shift")
		open := rapid.Bool().Draw(t, "open")
		a := NewAxis(begin, begin.Add(took), open)
		if n := len(a.Ticks); n < 1 || n > maxTicks+2 {
			t.Fatalf("%d ticks", n)
		}
		if a.To.Before(begin.Add(took)) || !a.To.After(a.From) {
			t.Fatalf("ends at %v", a.To)
		}
		seen := map[string]bool{}
		for _, tick := range a.Ticks {
			if seen[tick.Label] || tick.At.After(a.To) {
				t.Fatalf("ticks %v", a.Ticks)
			}
			seen[tick.Label] = true
		}
	})
}

// TestAxisOfOpenRunChangesRarely checks that a chart that is redrawn on each change of its axis is
// redrawn rarely.
func TestAxisOfOpenRunChangesRarely(t *testing.T) {
	changes, last := 0, time.Time{}
	for second := range 3600 {
		if to := NewAxis(begin, begin.Add(time.Duration(second)*time.Second), true).To; !to.Equal(last) {
			changes, last = changes+1, to
		}
	}
	if changes > 60 {
		t.Errorf("%d axes in an hour", changes)
	}
}

func TestTicksAreLabelled(t *testing.T) {
	for _, test := range []struct {
		took time.Duration
		last string
	}{{7 * time.Second, "7.0s"}, {40 * time.Second, "40s"}, {10 * time.Minute, "10m"}, {2 * time.Hour, "2h"}, {90 * time.Minute, "1h30m"}} {
		a := NewAxis(begin, begin.Add(test.took), false)
		if got := a.Ticks[len(a.Ticks)-1].Label; got != test.last {
			t.Errorf("%v: the last tick is %q, want %q", test.took, got, test.last)
		}
	}
}
