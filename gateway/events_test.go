package gateway

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store/storekey"
	"switchyard/gateway/runevents"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// event returns an event of a task at the given second of 2026.
func event(second int64, task, what string) *v1.Event {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &v1.Event{At: timestamppb.New(start.Add(time.Duration(second) * time.Second)), Task: task, Event: what}
}

// numbered returns n events of a generation, with consecutive ids that start at from.
func numbered(generation int32, from, n int) []*v1.Event {
	var all []*v1.Event
	for k := range n {
		e := event(int64(from+k), []string{"build", "test"}[(from+k)%2], "queued")
		e.Id = names.EventID(generation, "", int64(from+k))
		all = append(all, e)
	}
	return all
}

func (f *fixture) storeEvents(t *testing.T, run string, generation, part int32, events ...*v1.Event) {
	t.Helper()
	f.putMessage(t, storekey.Events(run, generation, part), &historyv1.EventSlice{Events: events})
}

// words renders events as "task event".
func words(events []*v1.Event) (all []string) {
	for _, e := range events {
		all = append(all, e.GetTask()+" "+e.GetEvent())
	}
	return all
}

// eventIDs returns the ids of events.
func eventIDs(events []*v1.Event) (all []string) {
	for _, e := range events {
		all = append(all, e.GetId())
	}
	return all
}

// pagedEvents reads all pages of a list of events. It calls the functions between the pages.
func (f *fixture) pagedEvents(t *testing.T, req *v1.ListRunEventsRequest, between ...func()) (all []*v1.Event, pages int) {
	t.Helper()
	defer func() { req.PageToken = "" }()
	for {
		res := answer(t, f.client.ListRunEvents, req)
		if req.GetPageSize() > 0 && len(res.GetItems()) > int(req.GetPageSize()) {
			t.Errorf("a page of %d", len(res.GetItems()))
		}
		all = append(all, res.GetItems()...)
		if req.PageToken = res.GetNextPageToken(); req.PageToken == "" {
			return all, pages + 1
		}
		if pages < len(between) {
			between[pages]()
		}
		pages++
	}
}

// TestRunEventsAreListedWhileTheyMoveToTheStore reads events from stored parts and from the workflow, while events move from the
// workflow to the store, and after the end of the run.
func TestRunEventsAreListedWhileTheyMoveToTheStore(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "eventful")
	stored := []*v1.Event{event(0, "", "submitted"), event(1, "build", "queued"), event(2, "build", "assigned")}
	held := []*v1.Event{event(3, "build", "started"), event(4, "build", "completed"), event(5, "test", "queued"), event(6, "test", "assigned"), event(7, "test", "completed")}
	f.storeEvents(t, id, 0, 0, stored...)
	signal(t, id, eventsSignal, &historyv1.EventsResponse{Slices: 1, Events: held})
	all := words(slices.Concat(stored, held))
	check := func(req *v1.ListRunEventsRequest, want []string, between ...func()) {
		t.Helper()
		req.Id = id
		if got, _ := f.pagedEvents(t, req, between...); !slices.Equal(words(got), want) {
			t.Errorf("%v: got %v, want %v", req, words(got), want)
		}
	}
	check(&v1.ListRunEventsRequest{}, all)
	check(&v1.ListRunEventsRequest{Task: "test", PageSize: 2}, all[5:])
	check(&v1.ListRunEventsRequest{Event: "queued", PageSize: 1}, []string{"build queued", "test queued"})
	// The first part of the workflow's events moves to the store between two pages.
	check(&v1.ListRunEventsRequest{PageSize: 4}, all, func() {
		f.storeEvents(t, id, 0, 1, held[:3]...)
		signal(t, id, eventsSignal, &historyv1.EventsResponse{Slices: 2, Events: held[3:]})
	})
	f.storeEvents(t, id, 0, 2, held[3:]...)
	end(t, id, "failed")
	for _, size := range []int32{1, 3, 0} {
		check(&v1.ListRunEventsRequest{PageSize: size}, all)
	}
	refused(t, "a task that the run does not have", f.client.ListRunEvents, &v1.ListRunEventsRequest{Id: id, Task: "tset"}, connect.CodeNotFound)

	// A run that was terminated could not store its events itself.
	shot := f.submit(t, "cut-short")
	f.storeEvents(t, shot, 0, 0, event(0, "", "submitted"))
	signal(t, shot, eventsSignal, &historyv1.EventsResponse{Slices: 1, Events: []*v1.Event{event(1, "build", "queued")}})
	f.get(t, shot) // makes the run process the signal
	endByForce(t, shot, "")
	if got, _ := f.pagedEvents(t, &v1.ListRunEventsRequest{Id: shot}); !slices.Equal(words(got), []string{" submitted", "build queued"}) {
		t.Errorf("got %v", got)
	}
}

// TestNotificationsAreEventsOfTheirRun checks that what became of messages is listed once, on pages of every size, and after an ID.
func TestNotificationsAreEventsOfTheirRun(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "told")
	own := numbered(0, 0, 4)
	f.storeEvents(t, id, 0, 0, own...)
	message := func(second int64, what, key string, number int64) *v1.Event {
		e := event(second, "", what)
		e.Id = names.EventID(0, key, number)
		return e
	}
	first, second := []*v1.Event{message(20, v1.EventNotifyFailed, "msg_a", 0), message(40, v1.EventNotified, "msg_a", 1)}, message(30, v1.EventNotified, "msg_b", 0)
	f.putMessage(t, storekey.Notified(id, 0, "msg_a"), &historyv1.EventSlice{Events: first})
	f.putMessage(t, storekey.Notified(id, 0, "msg_b"), &historyv1.EventSlice{Events: []*v1.Event{second}})
	end(t, id, "failed")
	want := append(eventIDs(own), first[0].GetId(), second.GetId(), first[1].GetId())
	for size := range int32(len(want) + 1) {
		if got, _ := f.pagedEvents(t, &v1.ListRunEventsRequest{Id: id, PageSize: size}); !slices.Equal(eventIDs(got), want) {
			t.Errorf("pages of %d: %v, want %v", size, eventIDs(got), want)
		}
	}
	if got, _ := f.pagedEvents(t, &v1.ListRunEventsRequest{Id: id, After: first[0].GetId()}); !slices.Equal(eventIDs(got), want[5:]) {
		t.Errorf("after a failure: %v", eventIDs(got))
	}
	if got, _ := f.pagedEvents(t, &v1.ListRunEventsRequest{Id: id, Event: v1.EventNotifyFailed}); !slices.Equal(eventIDs(got), want[4:5]) {
		t.Errorf("failures: %v", eventIDs(got))
	}
}

// TestListOfEventsResumesAfterAnID checks that a list can resume after any of its events: whole or filtered by task, page by
// page, from the workflow or from the store.
func TestListOfEventsResumesAfterAnID(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "resumed")
	all := numbered(0, 0, 9)
	all[8].At = all[0].At // the run learned of this event late, so it is not the last of a page
	f.storeEvents(t, id, 0, 0, all[:4]...)
	signal(t, id, eventsSignal, &historyv1.EventsResponse{Slices: 1, Events: all[4:]})
	for _, after := range []int{0, 3, 4, 8} {
		for _, task := range []string{"", "test"} {
			want := eventIDs(slices.DeleteFunc(slices.Clone(all[after+1:]), func(e *v1.Event) bool { return task != "" && e.GetTask() != task }))
			var got []string
			readTo := ""
			for req := (&v1.ListRunEventsRequest{Id: id, Task: task, After: all[after].GetId(), PageSize: 2}); readTo == "" || req.GetPageToken() != ""; {
				res := answer(t, f.client.ListRunEvents, req)
				got = append(got, eventIDs(res.GetItems())...)
				readTo, req.PageToken = cmp.Or(res.GetAfter(), readTo), res.GetNextPageToken()
			}
			slices.Sort(got)
			if !slices.Equal(got, want) || readTo != all[8].GetId() {
				t.Errorf("after %d of %q come %v, want %v; the events were read to %q", after, task, got, want, readTo)
			}
		}
	}
	for _, after := range []string{"0-9", "1-0", "0-each[0]-3"} {
		refused(t, "after "+after, f.client.ListRunEvents, &v1.ListRunEventsRequest{Id: id, After: after}, connect.CodeInvalidArgument)
	}
}

// TestEventsOfChildrenAreMerged merges the events of the children that carry a large fan-out into those of the run: in lists with any
// page size, in the list of a single instance, and in a stream that resumes exactly after each event.
func TestEventsOfChildrenAreMerged(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "merged", "each", "other")
	const instances = childFrom // of each of the two children
	run := []*v1.Event{
		event(0, "", "submitted"), event(0, "each", "submitted"), event(1, "each", "expanded"), event(1, "other", "queued"), event(20, "each", "completed"), event(21, "", "completed"),
	}
	for n, e := range run {
		e.Id = names.EventID(0, "", int64(n))
	}
	f.storeEvents(t, id, 0, 0, run...)
	want, at := eventIDs(run), map[string]time.Time{}
	status := &historyv1.StatusResponse{Run: &v1.Run{Id: id, State: "completed", Tasks: map[string]*v1.Task{}}}
	for _, from := range []int{0, instances} {
		status.Partitions = append(status.Partitions, &historyv1.PartitionReport{Task: "each", From: int32(from), Over: true})
		child, number := names.FanOut{Run: id, Task: "each", From: from}.ID(), int64(0)
		for part := range int32(2) {
			events := []*v1.Event{event(2, "", "submitted")} // belongs to the child only
			for k := range instances {
				events = append(events, event(int64(2+2*part)+int64(k)/3, names.InstanceName("each", from+k), []string{"queued", "completed"}[part]))
			}
			for k, e := range events {
				e.Id = names.EventID(0, names.InstanceName("each", from), number)
				if number++; k > 0 {
					want, at[e.GetId()] = append(want, e.GetId()), e.GetAt().AsTime()
				}
			}
			f.storeEvents(t, child, 0, part, events...)
		}
		f.putMessage(t, storekey.Status(child, 0), &historyv1.StatusResponse{Run: &v1.Run{Tasks: map[string]*v1.Task{"each": {Instances: []*v1.Instance{{Index: instances + 1, State: "completed"}}}}}})
	}
	f.putMessage(t, storekey.Status(id, 0), status)
	fanOut(t, id, "each", "completed", 2*instances, map[string]int32{"completed": 2 * instances})
	end(t, id, "completed")
	slices.Sort(want)

	for _, size := range []int32{0, 1, 7} {
		events, _ := f.pagedEvents(t, &v1.ListRunEventsRequest{Id: id, PageSize: size})
		got := eventIDs(events)
		ofInstances := slices.DeleteFunc(slices.Clone(got), func(id string) bool { return at[id].IsZero() })
		if !slices.IsSortedFunc(ofInstances, func(a, b string) int { return at[a].Compare(at[b]) }) || got[0] != run[0].GetId() || got[len(got)-1] != run[5].GetId() {
			t.Errorf("pages of %d are not in order: %v", size, got)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("pages of %d: got %v, want %v", size, got, want)
		}
	}
	for task, want := range map[string][]string{"each[5]": {"each[5] queued", "each[5] completed"}, "other": {"other queued"}} {
		if got, _ := f.pagedEvents(t, &v1.ListRunEventsRequest{Id: id, Task: task, PageSize: 1}); !slices.Equal(words(got), want) {
			t.Errorf("of %s: %v", task, got)
		}
	}

	path := "/v1/runs/" + id + "/events"
	s, _ := f.openStream(t, path)
	all := s.rest()
	got := sentIDs(t, all)
	if sorted := slices.Sorted(slices.Values(got)); !slices.Equal(sorted, want) {
		t.Fatalf("the stream has %v, want %v", got, want)
	}
	for k, e := range all[:len(all)-1] {
		s, _ := f.openStream(t, path, "Last-Event-ID", e.id)
		if rest := sentIDs(t, s.rest()); !slices.Equal(rest, got[k+1:]) {
			t.Errorf("after %s come %v, want %v", e.id, rest, got[k+1:])
		}
		// The short id that lists use loses nothing either.
		s, _ = f.openStream(t, path, "Last-Event-ID", got[k])
		rest := sentIDs(t, s.rest())
		if slices.Contains(rest, got[k]) || slices.ContainsFunc(got[k+1:], func(id string) bool { return !slices.Contains(rest, id) }) {
			t.Errorf("after %s alone come %v, want all of %v", got[k], rest, got[k+1:])
		}
	}
}

// TestEventsOfAnOpenChildAreQueried queries an open child for the events that it has not stored yet.
func TestEventsOfAnOpenChildAreQueried(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "merged-live", "each")
	child := startPart(t, id, "each", 10)
	signal(t, child, eventsSignal, &historyv1.EventsResponse{Slices: 1, Events: []*v1.Event{event(3, "each[5]", "completed")}})
	f.storeEvents(t, child, 0, 0, event(1, "each[4]", "queued"), event(2, "each[5]", "queued"))
	signal(t, id, eventsSignal, &historyv1.EventsResponse{Events: []*v1.Event{event(0, "", "submitted"), event(0, "each", "expanded")}})
	signal(t, id, setSignal, &historyv1.StatusResponse{Partitions: []*historyv1.PartitionReport{{Task: "each", From: childFrom}}})
	fanOut(t, id, "each", "running", 10, map[string]int32{"pending": 10})
	want := []string{" submitted", "each expanded", "each[4] queued", "each[5] queued", "each[5] completed"}
	for _, size := range []int32{0, 2} {
		if got, _ := f.pagedEvents(t, &v1.ListRunEventsRequest{Id: id, PageSize: size}); !slices.Equal(words(got), want) {
			t.Errorf("pages of %d: got %v, want %v", size, words(got), want)
		}
	}
}

// startedOn starts a scripted run with the given submission time that has sent tasks to a node.
func startedOn(t *testing.T, node string, submitted time.Time) string {
	t.Helper()
	a := visibility.Started("everywhere", v1.TriggerSubmit, submitted)
	a.Nodes = []string{node}
	return startedWith(t, a)
}

// awaitVisible waits until visibility lists the given number of runs with tasks on a node.
func (f *fixture) awaitVisible(t *testing.T, node, state string, runs int) {
	t.Helper()
	eventually(t, "visibility has the runs", func() bool {
		ids, _ := f.list(t, &v1.ListRunsRequest{Node: node, State: state, PageSize: 1000})
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
		var listed []string
		events := numbered(0, 0, 4)
		for n, e := range events {
			e.Task, e.Event = fmt.Sprintf("t%d", n%2), []string{"assigned", "failed"}[n%2]
			if n < 3 {
				e.Node = node
				listed = append(listed, id+" "+e.GetId())
			}
		}
		if run == 1 {
			f.storeEvents(t, id, 0, 0, events...)
			end(t, id, "completed")
		} else {
			f.storeEvents(t, id, 0, 0, events[:1]...)
			signal(t, id, eventsSignal, &historyv1.EventsResponse{Slices: 1, Events: events[1:]})
		}
		want = append(listed, want...) // the newest run first
	}
	f.awaitVisible(t, node, "", 3)
	failed := []string{want[1], want[4], want[7]}
	for _, test := range []struct {
		req  *v1.ListRunEventsRequest
		want []string
	}{
		{&v1.ListRunEventsRequest{}, want}, {&v1.ListRunEventsRequest{PageSize: 1}, want}, {&v1.ListRunEventsRequest{PageSize: 3}, want},
		{&v1.ListRunEventsRequest{Event: "failed", PageSize: 2}, failed}, {&v1.ListRunEventsRequest{Task: "t1"}, failed}, {&v1.ListRunEventsRequest{Task: "absent"}, nil},
	} {
		test.req.Node = node
		events, _ := f.pagedEvents(t, test.req)
		var got []string
		for _, e := range events {
			got = append(got, e.GetRun()+" "+e.GetId())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%v: got %v, want %v", test.req, got, test.want)
		}
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
		signal(t, id, eventsSignal, &historyv1.EventsResponse{Slices: 1})
	}
	end(t, ended, "completed")
	f.awaitVisible(t, node, "", 3)
	f.awaitVisible(t, node, "completed", 1)
	for _, test := range []struct {
		req  *v1.ListRunEventsRequest
		want []string
	}{
		{&v1.ListRunEventsRequest{Since: timestamppb.New(now.Add(time.Hour))}, []string{late, early}},
		{&v1.ListRunEventsRequest{Until: timestamppb.New(now.Add(-time.Hour))}, []string{ended, early}},
	} {
		test.req.Node = node
		events, _ := f.pagedEvents(t, test.req)
		var got []string
		for _, e := range events {
			got = append(got, e.GetRun())
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%v: events of %v, want %v", test.req, got, test.want)
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
	f.awaitVisible(t, node, "", runs)
	found, pages := f.pagedEvents(t, &v1.ListRunEventsRequest{Node: node})
	if len(found) != 1 || found[0].GetRun() != oldest || pages != 2 {
		t.Errorf("%d pages with %v", pages, found)
	}
}
