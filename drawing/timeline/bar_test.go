package timeline

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

var begin = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

func after(seconds float64) *timestamppb.Timestamp {
	return timestamppb.New(begin.Add(time.Duration(seconds * float64(time.Second))))
}

func TestCurrentWaitHasAReason(t *testing.T) {
	failed := []*v1.Attempt{{Node: "n", State: "failed", AssignedAt: after(1), StartedAt: after(1), CompletedAt: after(2)}}
	for want, task := range map[string]*v1.Task{
		"waits for a node: no room":            {State: "queued", Error: "no room"},
		"waits before its next attempt: exit":  {State: "queued", Error: "exit", ScheduledAfter: after(30), Attempts: failed},
		"held back: by ann":                    {State: "queued", Error: "by ann", Held: true},
		"waits for the lock db, held by r[a]":  {State: "queued", Error: "waits for the lock db, held by r[a]"},
		"waits for its start":                  {State: "assigned", Node: "n", AssignedAt: after(1)},
		"waits for approval: ship it?":         {State: "paused", Reason: "approval", Error: "ship it?", AssignedAt: after(1), StartedAt: after(1)},
		"suspended":                            {State: "paused", Reason: "suspended", AssignedAt: after(1), StartedAt: after(1)},
		"waits for its node: silent for 40s":   {State: "running", Notice: "silent for 40s", AssignedAt: after(1), StartedAt: after(1)},
		"":                                     {State: "running", AssignedAt: after(1), StartedAt: after(1)},
		"waits for a node: again, with a past": {State: "queued", Error: "again, with a past", ScheduledAfter: after(5), QueuedAt: after(6), Attempts: failed},
	} {
		bar := BarOf("a", task, begin, begin.Add(10*time.Second))
		last := bar.Spans[len(bar.Spans)-1]
		if got := last.Why.String(); got != want || !last.Open {
			t.Errorf("got %q of %+v, want %q", got, last, want)
		}
		for _, s := range bar.Spans[:len(bar.Spans)-1] {
			if s.Open {
				t.Errorf("%+v is open", s)
			}
		}
	}
}

// TestBackOffIsASeparateSpan checks the spans before the newest attempt, the only one whose
// back-off is known.
func TestBackOffIsASeparateSpan(t *testing.T) {
	task := &v1.Task{
		State: "running", Attempt: 1, Node: "n", ScheduledAfter: after(5), QueuedAt: after(5), AssignedAt: after(8), StartedAt: after(9),
		Attempts: []*v1.Attempt{{Node: "n", State: "failed", AssignedAt: after(1), StartedAt: after(1), CompletedAt: after(2)}},
	}
	bar := BarOf("a", task, begin, begin.Add(10*time.Second))
	var kinds string
	for _, s := range bar.Spans {
		kinds += s.Kind + "(" + s.Why.Word + ") "
	}
	if want := "queue() run() queue(backoff) queue() wait() run() "; kinds != want {
		t.Errorf("got %s, want %s", kinds, want)
	}
}

func TestEveryReasonHasALabel(t *testing.T) {
	for _, word := range Reasons() {
		if Label(word) == "" {
			t.Errorf("%s has no words", word)
		}
	}
}
