package gateway

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/runevents"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// startedOn starts a scripted run with the given submission time that has sent tasks to a node.
func startedOn(t *testing.T, node string, submitted time.Time) string {
	t.Helper()
	a := visibility.Started("everywhere", v1.TriggerSubmit, submitted)
	a.Nodes = []string{node}
	return startedWith(t, a)
}

// awaitVisible waits until visibility lists the given number of runs with tasks on a node.
func (f *fixture) awaitVisible(t *testing.T, node string, runs int) {
	t.Helper()
	eventually(t, "visibility has the runs", func() bool {
		ids, _ := f.list(t, &v1.ListRunsRequest{Node: node, PageSize: 1000})
		return len(ids) == runs
	})
}

// TestEventsOfAllRunsAreListedRunByRun checks that the events of all runs are listed run by run, for any page size.
func TestEventsOfAllRunsAreListedRunByRun(t *testing.T) {
	t.Parallel()
	f := start(t)
	const node = "events-everywhere"
	var want []string
	for run := range 3 {
		id := startedOn(t, node, time.Now())
		var events []*v1.Event
		var told []string
		for n := range 4 {
			e := event(int64(n), fmt.Sprintf("t%d", n%2), []string{"assigned", "failed"}[n%2])
			e.Id = names.EventID(0, "", int64(n))
			if n < 3 {
				e.Node = node
				told = append(told, id+" "+e.GetId())
			}
			events = append(events, e)
		}
		if run == 1 {
			f.storeEvents(t, id, 0, 0, events...)
			end(t, id, "completed")
		} else {
			f.storeEvents(t, id, 0, 0, events[:1]...)
			signal(t, id, eventsSignal, &v1.EventsResponse{Slices: 1, Events: events[1:]})
		}
		want = append(told, want...) // the newest run first
	}
	f.awaitVisible(t, node, 3)
	of := func(req *v1.ListRunEventsRequest) (got []string) {
		t.Helper()
		found, _ := f.pagedEvents(t, req)
		for _, e := range found {
			got = append(got, e.GetRun()+" "+e.GetId())
		}
		return got
	}
	for _, size := range []int32{0, 1, 3} {
		if got := of(&v1.ListRunEventsRequest{Node: node, PageSize: size}); !slices.Equal(got, want) {
			t.Errorf("pages of %d: got %v, want %v", size, got, want)
		}
	}
	failed := []string{want[1], want[4], want[7]}
	if got := of(&v1.ListRunEventsRequest{Node: node, Event: "failed", PageSize: 2}); !slices.Equal(got, failed) {
		t.Errorf("got %v that have failed, want %v", got, failed)
	}
	if got := of(&v1.ListRunEventsRequest{Node: node, Task: "t1"}); !slices.Equal(got, failed) {
		t.Errorf("got %v of one task, want %v", got, failed)
	}
	if got := of(&v1.ListRunEventsRequest{Node: node, Task: "absent"}); len(got) > 0 {
		t.Errorf("got %v of a task that no run has", got)
	}

	token := func(req *v1.ListRunEventsRequest) string {
		t.Helper()
		res, err := f.client.ListRunEvents(t.Context(), connect.NewRequest(req))
		if err != nil || res.Msg.GetNextPageToken() == "" {
			t.Fatalf("%v %v", res, err)
		}
		return res.Msg.GetNextPageToken()
	}
	all := token(&v1.ListRunEventsRequest{Node: node, PageSize: 1})
	id, _, _ := strings.Cut(want[0], " ")
	for what, req := range map[string]*v1.ListRunEventsRequest{
		"of all runs, for one":     {Id: id, Node: node, PageToken: all},
		"of all runs, by another":  {Node: node, Event: "failed", PageToken: all},
		"of one run, for all runs": {Node: node, PageToken: token(&v1.ListRunEventsRequest{Id: id, Node: node, PageSize: 1})},
		"that is none":             {PageToken: "x"},
	} {
		_, err := f.client.ListRunEvents(t.Context(), connect.NewRequest(req))
		wantCode(t, "a token "+what, err, connect.CodeInvalidArgument)
	}
}

// TestEventsOfAllRunsReadOnlyRunsOfTheirTime checks that a list does not read runs that ended before its time
// range or were submitted after it.
func TestEventsOfAllRunsReadOnlyRunsOfTheirTime(t *testing.T) {
	t.Parallel()
	f := start(t)
	const node = "events-in-time"
	now := time.Now()
	at := func(when time.Time) *v1.Event {
		return &v1.Event{At: timestamppb.New(when), Task: "t", Event: "failed", Node: node}
	}
	early, late, ended := startedOn(t, node, now.Add(-3*time.Hour)), startedOn(t, node, now), startedOn(t, node, now.Add(-3*time.Hour))
	for _, id := range []string{early, late, ended} {
		f.storeEvents(t, id, 0, 0, at(now.Add(-2*time.Hour)), at(now.Add(2*time.Hour)))
		signal(t, id, eventsSignal, &v1.EventsResponse{Slices: 1})
	}
	end(t, ended, "completed")
	f.awaitVisible(t, node, 3)
	eventually(t, "visibility has the end of a run", func() bool {
		ids, _ := f.list(t, &v1.ListRunsRequest{Node: node, State: "completed"})
		return len(ids) == 1
	})
	for what, test := range map[string]struct {
		req  *v1.ListRunEventsRequest
		want []string
	}{
		"since": {&v1.ListRunEventsRequest{Since: timestamppb.New(now.Add(time.Hour))}, []string{late, early}},
		"until": {&v1.ListRunEventsRequest{Until: timestamppb.New(now.Add(-time.Hour))}, []string{ended, early}},
	} {
		test.req.Node = node
		found, _ := f.pagedEvents(t, test.req)
		var got []string
		for _, e := range found {
			got = append(got, e.GetRun())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: events of %v, want %v", what, got, test.want)
		}
	}
}

// TestPageOfEventsReadsFewRuns checks that a page reads a bounded number of runs. It may therefore be empty
// without being the last page.
func TestPageOfEventsReadsFewRuns(t *testing.T) {
	t.Parallel()
	f := start(t)
	const node, runs = "events-many", runevents.MaxRuns + 3
	oldest := ""
	for range runs {
		id := startedOn(t, node, time.Now())
		if oldest == "" {
			oldest = id
			e := event(0, "t", "failed")
			e.Node = node
			f.storeEvents(t, id, 0, 0, e)
		}
		end(t, id, "completed")
	}
	f.awaitVisible(t, node, runs)
	found, pages := f.pagedEvents(t, &v1.ListRunEventsRequest{Node: node})
	if len(found) != 1 || found[0].GetRun() != oldest || pages != 2 {
		t.Errorf("%d pages with %v", pages, found)
	}
}

// TestStuckRunDoesNotHoldUpTheListOfEvents checks that a run that no longer answers does not keep other runs from being listed.
// Its stored events are still listed.
func TestStuckRunDoesNotHoldUpTheListOfEvents(t *testing.T) {
	t.Parallel()
	f := start(t)
	const node = "events-stuck"
	healthy, stuck := startedOn(t, node, time.Now()), startedOn(t, node, time.Now())
	for _, id := range []string{healthy, stuck} {
		e := event(0, "t", "failed")
		e.Node = node
		chain := f.describe(t, id).GetWorkflowExecutionInfo().GetExecution().GetRunId()
		f.storeEvents(t, names.Home(id, chain), 0, 0, e)
		signal(t, id, setSignal, &v1.StatusResponse{Chain: chain})
		signal(t, id, eventsSignal, &v1.EventsResponse{Slices: 1})
	}
	signal(t, stuck, panicSignal, "out of order")
	eventually(t, "the run has a problem", func() bool {
		res, err := f.client.GetRun(t.Context(), connect.NewRequest(&v1.GetRunRequest{Id: stuck}))
		return err == nil && res.Msg.GetRun().GetProblem() != ""
	})
	f.awaitVisible(t, node, 2)
	found, _ := f.pagedEvents(t, &v1.ListRunEventsRequest{Node: node})
	if len(found) != 2 || found[0].GetRun() != stuck || found[1].GetRun() != healthy {
		t.Errorf("events %v", found)
	}
}
