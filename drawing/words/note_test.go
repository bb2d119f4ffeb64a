package words

import (
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

func TestTallyCountsInstancesByState(t *testing.T) {
	for _, test := range []struct {
		count  int32
		counts map[string]int32
		want   string
	}{
		{0, nil, "0/0 done"},
		{100, map[string]int32{"completed": 37, "running": 4, "dead_letter": 1, "pending": 58}, "37/100 done, 4 running, 1 failed"},
		{9, map[string]int32{"completed": 1, "failed": 1, "lost": 1, "skipped": 2, "cancelled": 3, "paused": 1}, "1/9 done, 1 paused, 2 failed, 2 skipped, 3 cancelled"},
	} {
		if got := Tally(&v1.Task{Count: &test.count, Counts: test.counts}); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// TestNoteNamesTheChildRunOnce checks the note of a task of type run.
func TestNoteNamesTheChildRunOnce(t *testing.T) {
	for want, task := range map[string]*v1.Task{
		"run deploy-1":                         {State: "running", ChildRun: "deploy-1"},
		"run deploy-1: waits for deploy-0":     {State: "queued", ChildRun: "deploy-1", Error: "waits for deploy-0"},
		`run deploy-1 failed: task "a" failed`: {State: "failed", ChildRun: "deploy-1", Error: `run deploy-1 failed: task "a" failed`},
	} {
		if got := Note(task, time.Now()); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestNoteOfAFanOutSaysWhatHoldsItUp checks that the note of a fan-out has its notice after its counts.
func TestNoteOfAFanOutSaysWhatHoldsItUp(t *testing.T) {
	count := int32(2)
	task := &v1.Task{State: "running", Count: &count, Counts: map[string]int32{"running": 2}, Notice: "a[0]: node b has been silent", Error: "waits"}
	if got, want := Note(task, time.Now()), "0/2 done, 2 running: a[0]: node b has been silent"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestNoteWithoutNowNamesNoRemainingTime checks that a note without the current time changes only
// with its task.
func TestNoteWithoutNowNamesNoRemainingTime(t *testing.T) {
	now := time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)
	task := &v1.Task{State: "queued", Error: "exit code 1", ScheduledAfter: timestamppb.New(now.Add(5 * time.Second))}
	if got, want := Note(task, now), "again in 5.0s: exit code 1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := Note(task, time.Time{}), "again later: exit code 1"; got != want {
		t.Errorf("without now: got %q, want %q", got, want)
	}
	task.QueuedAt, task.Error = timestamppb.New(now), "0 of 2 nodes have 2 free GPUs"
	if got := Note(task, time.Time{}); got != task.Error {
		t.Errorf("of a task that waits for a node: got %q", got)
	}
}

// TestEveryStateIsCounted checks that no state is left out of the counts.
func TestEveryStateIsCounted(t *testing.T) {
	counts := map[string]int{}
	for _, state := range v1.TaskStates() {
		counts[state] = 1
	}
	if got := len(StateCounts(counts)); got != len(counts) {
		t.Errorf("%d of %d states are counted", got, len(counts))
	}
	if got, want := CountStates(map[string]int32{"failed": 1, "completed": 3}), "3 completed, 1 failed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
