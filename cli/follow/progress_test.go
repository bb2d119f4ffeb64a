package follow

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/cli/tui"
	v1 "switchyard/proto/switchyard/v1"
)

// submitted is the time at which the runs of the tests were submitted.
var submitted = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

// report applies a change of a run and passes it to the progress.
func report(t *testing.T, p progress, b *tui.Status, m *v1.WatchRunResponse) {
	t.Helper()
	if err := p.changed(b, b.Apply(m)); err != nil {
		t.Fatal(err)
	}
	if err := p.tick(b); err != nil {
		t.Fatal(err)
	}
}

func TestOnlyLongWaitsGetALine(t *testing.T) {
	out, now := &strings.Builder{}, submitted
	terminal := &Terminal{Screen: tui.NewScreen(out, nil), Now: func() time.Time { return now }, Style: tui.Style{Zone: time.UTC}}
	p, b := newProgress(terminal), tui.NewStatus("r-1")
	tell := func(tasks map[string]*v1.Task) {
		t.Helper()
		report(t, p, b, &v1.WatchRunResponse{TaskCount: 4, Run: &v1.Run{Id: "r-1", State: "running", Tasks: tasks}})
	}
	tell(map[string]*v1.Task{
		"short": {State: "queued", Error: "no nodes"},
		"long":  {State: "queued", Error: "no nodes"},
		"slot":  {State: "queued"},
		"again": {State: "queued", Attempt: 1, Node: "n", Error: "exit code 1", ScheduledAfter: timestamppb.New(submitted.Add(2 * time.Second))},
	})
	now = now.Add(minReportedWait / 2)
	tell(map[string]*v1.Task{"short": {State: "assigned", Node: "n"}, "long": {State: "queued", Error: "n has 0 cores free"}})
	now = now.Add(minReportedWait / 2)
	tell(nil)
	now = now.Add(minReportedWait)
	tell(nil)
	want := `15:09:26  run r-1
15:09:26  again  queued       n  attempt 1  again in 2.0s: exit code 1
15:09:26  short  assigned     n  attempt 0
15:09:26  long   queued                     n has 0 cores free
`
	if got := out.String(); got != want {
		t.Errorf("got\n%swant\n%s", got, strings.TrimSpace(want))
	}
}

// TestWaitOfARunGetsALine checks that the reason of a run that waits as a whole is printed once, and its end is not.
func TestWaitOfARunGetsALine(t *testing.T) {
	out := &strings.Builder{}
	terminal := &Terminal{Screen: tui.NewScreen(out, nil), Now: func() time.Time { return submitted }, Style: tui.Style{Zone: time.UTC}}
	p, b := newProgress(terminal), tui.NewStatus("r-1")
	for _, run := range []*v1.Run{
		{Id: "r-1", State: "pending"}, {Id: "r-1", State: "pending", Error: "held by r-0"}, {Id: "r-1", State: "pending", Error: "held by r-0"},
		{Id: "r-1", State: "running"}, {Id: "r-1", State: "failed", Error: "task a failed"},
	} {
		report(t, p, b, &v1.WatchRunResponse{TaskCount: 1, Run: run})
	}
	if want := "15:09:26  run r-1\n15:09:26  held by r-0\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// TestProgressOfAHundredThousandInstances checks that a large fan-out does not print one line per instance.
func TestProgressOfAHundredThousandInstances(t *testing.T) {
	out, now := &strings.Builder{}, submitted
	terminal := &Terminal{Screen: tui.NewScreen(out, nil), Now: func() time.Time { return now }, Style: tui.Style{Zone: time.UTC}}
	p, b := newProgress(terminal), tui.NewStatus("r-1")
	count, done, seconds := int32(100_000), int32(0), 0
	tell := func(state string, instances ...*v1.Instance) {
		t.Helper()
		counts := map[string]int32{"completed": done, "pending": count - done}
		task := &v1.Task{State: state, Count: &count, Counts: counts, Instances: instances}
		report(t, p, b, &v1.WatchRunResponse{TaskCount: 1, Run: &v1.Run{Id: "r-1", State: "running", Tasks: map[string]*v1.Task{"each": task}}})
	}
	tell("running")
	for done < count {
		var ends []*v1.Instance
		for i := range int32(500) {
			state := "completed"
			if (done+i)%10 == 7 {
				state = "failed"
			}
			ends = append(ends, &v1.Instance{Index: done + i, State: state, Node: "n", Error: "exit code 1"}, &v1.Instance{Index: count - 1 - i, State: "running"})
		}
		done += 500
		if now = now.Add(100 * time.Millisecond); done%5000 == 0 {
			seconds++
		}
		tell("running", ends...)
	}
	tell("completed")
	text := out.String()
	lines := strings.Count(text, "\n")
	if most := 3 + maxEnds + maxFailedEnds + seconds + 1; lines > most || lines < maxEnds+maxFailedEnds+seconds {
		t.Errorf("%d lines, want at most %d and not many less:\n%s", lines, most, text)
	}
	if last := text[strings.LastIndex(strings.TrimSpace(text), "\n")+1:]; !strings.Contains(last, "each") || !strings.Contains(last, "completed") || !strings.Contains(last, "100000/100000 done") {
		t.Errorf("the end is %q", last)
	}
}

// TestTallyIsPrintedOnce checks that a tally with unchanged text is reported only once.
func TestTallyIsPrintedOnce(t *testing.T) {
	count, p := int32(100), fanOutProgress{}
	tally := func(counts map[string]int32) tui.Change {
		return tui.Change{Name: "each", TallyOnly: true, Task: &v1.Task{State: "running", Count: &count, Counts: counts}}
	}
	now := submitted
	for i, test := range []struct {
		counts map[string]int32
		due    int
	}{
		{map[string]int32{"completed": 1, "pending": 99}, 1},
		{map[string]int32{"completed": 1, "pending": 98, "queued": 1}, 0},
		{map[string]int32{"completed": 2, "pending": 97, "queued": 1}, 1},
	} {
		now = now.Add(tallyEvery)
		if p.shouldReport(tally(test.counts)) {
			t.Error("a tally is told at once")
		}
		if due := p.due(now); len(due) != test.due {
			t.Errorf("%d: %v are due", i, due)
		}
	}
}
