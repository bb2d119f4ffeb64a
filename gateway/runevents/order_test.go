package runevents

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"
	"pgregory.net/rapid"
)

// TestHeartbeatReportsTheStartUntilTheWorkflowDoes checks that the start of an attempt comes from its heartbeat until the workflow reports it.
func TestHeartbeatReportsTheStartUntilTheWorkflowDoes(t *testing.T) {
	v := runview.NewView("w-1")
	v.Update([]*historyv1.StatusResponse{{
		Run: &v1.Run{Tasks: map[string]*v1.Task{
			"a": {State: "assigned", Node: "n", Attempt: 1}, "b": {State: "assigned"}, "c": {State: "assigned"}, "d": {State: "completed"},
		}},
		Claims: map[string]int32{"a": 2, "b": 1, "c": 1, "d": 1},
	}}, map[string]runview.RunningAttempt{
		"a#2": {Started: eventAt(5, "", "").GetAt()}, "b#1": {Started: eventAt(6, "", "").GetAt()}, "d#1": {Started: eventAt(7, "", "").GetAt()},
	})
	known := []*v1.Event{eventAt(1, "a", "started"), {Task: "b", Event: "started", Claim: 1}}
	got := startedEvents(v, "", known)
	if len(got) != 1 || got[0].GetTask() != "a" || got[0].GetNode() != "n" || got[0].GetAttempt() != 1 || got[0].GetClaim() != 2 || got[0].GetAt().AsTime() != eventAt(5, "", "").GetAt().AsTime() {
		t.Errorf("got %v", got)
	}
	if got := startedEvents(v, "b", nil); len(got) != 1 || got[0].GetTask() != "b" {
		t.Errorf("got %v of one task", got)
	}
}

// TestLateStartComesBeforeAPause checks that a start that the workflow learned of late is sorted before a pause that
// happened later.
func TestLateStartComesBeforeAPause(t *testing.T) {
	got := sortByTime([]*v1.Event{
		eventAt(1, "", "submitted"), eventAt(2, "a", "assigned"), eventAt(6, "", "paused"), eventAt(3, "a", "started"), eventAt(8, "a", "completed"),
		eventAt(9, "", "resumed"), eventAt(12, "b", "completed"), eventAt(10, "", "completed"), eventAt(11, "", "submitted"), eventAt(7, "b", "queued"),
	})
	var words []string
	for _, e := range got {
		words = append(words, strings.TrimSpace(e.GetTask()+" "+e.GetEvent()))
	}
	want := []string{"submitted", "a assigned", "a started", "paused", "a completed", "resumed", "b completed", "completed", "submitted", "b queued"}
	if !slices.Equal(words, want) {
		t.Errorf("got %q, want %q", words, want)
	}
}

// TestWhatANodeReportsLateComesInItsTime checks the events of an attempt whose worker was killed and came back: the run learns of
// the start, and of the end, after it has observed the silence.
func TestWhatANodeReportsLateComesInItsTime(t *testing.T) {
	on := func(second int64, what string, claim int32) *v1.Event {
		e := eventAt(second, "a", what)
		e.Node, e.Claim = "n", claim
		return e
	}
	for name, c := range map[string]struct {
		learned []*v1.Event
		want    string
	}{
		"found again": {
			[]*v1.Event{on(1, "queued", 1), on(2, "assigned", 1), on(17, "silent", 1), on(18, "found", 1), eventAt(20, "a", "paused"), on(3, "started", 1), on(25, "completed", 1)},
			"queued assigned started silent found paused completed",
		},
		"ended in silence": {
			[]*v1.Event{on(2, "assigned", 1), on(17, "silent", 1), on(30, "found", 1), on(3, "started", 1), on(4, "turn", 1), on(9, "failed", 1), on(31, "queued", 2)},
			"assigned started turn failed silent found queued",
		},
		"a clock that is behind": {
			[]*v1.Event{on(20, "assigned", 1), on(3, "started", 1), on(5, "failed", 1), on(22, "queued", 2), on(23, "assigned", 2), on(6, "started", 2)},
			"assigned started failed queued assigned started",
		},
		"a clock that is ahead": {
			[]*v1.Event{on(1, "assigned", 1), on(40, "started", 1), on(50, "failed", 1), on(9, "queued", 2), on(10, "assigned", 2)},
			"assigned started failed queued assigned",
		},
	} {
		var words []string
		for _, e := range sortByTime(c.learned) {
			words = append(words, e.GetEvent())
		}
		if got := strings.Join(words, " "); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// TestSortByTimeKeepsTheOrderOfEachTask checks that events are sorted by time, that each task and the run keep their order whatever the clocks
// say, and that no event moves past the beginning or the end of a generation.
func TestSortByTimeKeepsTheOrderOfEachTask(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		events := []*v1.Event{}
		for i := range rapid.IntRange(0, 20).Draw(t, "events") {
			what := rapid.SampledFrom([]string{"submitted", "paused", "completed"}).Draw(t, "event")
			e := eventAt(rapid.Int64Range(0, 9).Draw(t, "at"), rapid.SampledFrom([]string{"", "a", "b", "c"}).Draw(t, "task"), what)
			e.Claim = int32(i)
			events = append(events, e)
		}
		got := sortByTime(events)
		if len(got) != len(events) {
			t.Fatalf("%d events became %d", len(events), len(got))
		}
		for i, e := range got {
			for _, later := range got[i+1:] {
				if (e.GetTask() == later.GetTask() || boundsGeneration(e) || boundsGeneration(later)) && e.GetClaim() > later.GetClaim() {
					t.Fatalf("%v comes before %v", e, later)
				}
			}
		}
		byTime := slices.SortedStableFunc(slices.Values(events), func(a, b *v1.Event) int {
			return cmp.Compare(a.GetAt().GetSeconds(), b.GetAt().GetSeconds())
		})
		if again := sortByTime(byTime); fmt.Sprint(again) != fmt.Sprint(byTime) {
			t.Fatalf("%v became %v", byTime, again)
		}
	})
}

// eventAt returns an event at the given second.
func eventAt(second int64, task, what string) *v1.Event {
	return &v1.Event{At: &timestamppb.Timestamp{Seconds: second}, Task: task, Event: what}
}
