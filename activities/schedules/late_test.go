package schedules_test

import (
	"testing"
	"time"

	"switchyard/dev/testneeds"
	v1 "switchyard/proto/switchyard/v1"
)

// TestPausedScheduleIsLate checks that a schedule is late from the expected time on although it could start nothing.
func TestPausedScheduleIsLate(t *testing.T) {
	t.Parallel()
	store(t, "name: overdue\nschedule: { cron: '0 2 * * *', expectedBy: '06:00', paused: true }\ntasks: { a: { type: shell, spec: { command: x } } }\n")
	lateSince := func(now time.Time) time.Time {
		s := get(t, "overdue")
		if s.GetExpectedBy() != "06:00" || s.GetStoredAt() == nil {
			t.Fatalf("it is %v", s)
		}
		if err := all().At(now).AddLateness(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		if s.GetLateSince() == nil {
			return time.Time{}
		}
		return s.GetLateSince().AsTime()
	}
	today := time.Now().UTC().Truncate(24 * time.Hour)
	if got := lateSince(time.Now()); !got.IsZero() {
		t.Errorf("just stored, and late since %v", got)
	}
	due := today.AddDate(0, 0, 2).Add(6 * time.Hour)
	for _, now := range []time.Time{due, due.Add(23 * time.Hour)} {
		if got := lateSince(now); !got.Equal(due) {
			t.Errorf("at %v late since %v, want %v", now, got, due)
		}
	}
}

// TestCompletedRunEndsLateness checks that a completed run of the schedule counts for the times before it, and one that is open does
// not.
func TestCompletedRunEndsLateness(t *testing.T) {
	t.Parallel()
	store(t, openYearly("completes", "allow"))
	s, before := get(t, "completes"), time.Now().Add(-time.Minute)
	hasCompleted := func(of *v1.Schedule, first time.Time) bool {
		got, err := all().HasCompleted(t.Context(), of, first)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	run := trigger(t, "completes", "").RunID
	if hasCompleted(s, before) {
		t.Error("an open run counts")
	}
	end(t, run)
	testneeds.Await(t, "the run counts once it has completed", func() bool { return hasCompleted(s, before) })
	if hasCompleted(s, time.Now().Add(time.Minute)) {
		t.Error("it counts for later times")
	}
	other := get(t, "completes")
	if other.Id, other.Workflow = "workflow:other", "other"; hasCompleted(other, before) {
		t.Error("it counts for another schedule")
	}
}
