package follow

import (
	"slices"
	"testing"
	"time"
)

// TestInterruptsBeforeFinallyEndOnlyTheTasks plays interrupts of a local run. Each event is one of "interrupt", "late", "begun" (of
// finally), "told", and "read", which passes the time to read.
func TestInterruptsBeforeFinallyEndOnlyTheTasks(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		without bool // the run has no finally
		events  []string
		want    []step
	}{
		"it ends in time":            {events: []string{"begun"}, want: []step{awaitFinally}},
		"twice at once":              {events: []string{"interrupt", "told", "interrupt", "begun"}, want: []step{kill, ignore, awaitFinally}},
		"twice as finally begins":    {events: []string{"begun", "interrupt", "told", "interrupt"}, want: []step{awaitFinally, ignore, ignore}},
		"finally ends by an order":   {events: []string{"interrupt", "told", "begun", "told", "read", "interrupt", "late", "told", "late"}, want: []step{kill, awaitFinally, endFinally, kill, force}},
		"a slow end is not forced":   {events: []string{"late", "told", "late", "late", "begun"}, want: []step{kill, awaitFinally}},
		"finally begins late":        {events: []string{"late", "told", "read", "begun", "interrupt"}, want: []step{kill, awaitFinally, ignore}},
		"finally takes its time":     {events: []string{"begun", "told", "read", "late", "late"}, want: []step{awaitFinally}},
		"a person quits":             {events: []string{"interrupt", "told", "read", "interrupt"}, want: []step{kill, quit}},
		"a person quits in its end":  {events: []string{"begun", "told", "read", "interrupt", "interrupt", "told", "read", "interrupt"}, want: []step{awaitFinally, endFinally, kill, quit}},
		"without finally":            {without: true, events: []string{"interrupt", "told", "interrupt", "late", "interrupt"}, want: []step{kill, ignore, force, quit}},
		"without finally and signal": {without: true, events: []string{"late", "told", "late"}, want: []step{kill, force}},
	} {
		now := time.Unix(0, 0)
		i := &interruption{now: func() time.Time { return now }, hasFinally: !test.without}
		var got []step
		for _, event := range test.events {
			next := noStep
			switch event {
			case "interrupt":
				next = i.interrupted()
			case "late":
				next = i.late()
			case "begun":
				next = i.finallyBegan()
			case "told":
				i.tell(i.current)
			case "read":
				now = now.Add(readingTime)
			}
			if next != noStep {
				got = append(got, next)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
