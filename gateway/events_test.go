package gateway

import (
	"cmp"
	"slices"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// event returns an event of a task at the given second of 2026.
func event(second int64, task, what string) *v1.Event {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	return &v1.Event{At: timestamppb.New(start.Add(time.Duration(second) * time.Second)), Task: task, Event: what}
}

func (f *fixture) storeEvents(t *testing.T, run string, generation, part int32, events ...*v1.Event) {
	t.Helper()
	if err := f.config.Store.PutMessage(t.Context(), storekey.Events(run, generation, part), &v1.EventSlice{Events: events}); err != nil {
		t.Fatal(err)
	}
}

// words renders events as "task event".
func words(events []*v1.Event) []string {
	var all []string
	for _, e := range events {
		all = append(all, e.GetTask()+" "+e.GetEvent())
	}
	return all
}

// events reads the events of a run page by page. It calls between after each page except the last.
func (f *fixture) events(t *testing.T, run, task string, size int32, between func()) []string {
	t.Helper()
	var all []string
	for token := ""; ; between() {
		res, err := f.client.ListRunEvents(t.Context(), connect.NewRequest(&v1.ListRunEventsRequest{Id: run, Task: task, PageSize: size, PageToken: token}))
		if err != nil {
			t.Fatal(err)
		}
		if size > 0 && len(res.Msg.GetItems()) > int(size) {
			t.Errorf("a page of %d", len(res.Msg.GetItems()))
		}
		all = append(all, words(res.Msg.GetItems())...)
		if token = res.Msg.GetNextPageToken(); token == "" {
			return all
		}
	}
}

// TestRunEventsAreListedWhileTheyMoveToTheStore reads events from stored parts, from the workflow and from several
// generations, while events move from the workflow to the store.
func TestRunEventsAreListedWhileTheyMoveToTheStore(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "eventful")
	stored := []*v1.Event{event(0, "", "submitted"), event(1, "build", "queued"), event(2, "build", "assigned")}
	held := []*v1.Event{event(3, "build", "started"), event(4, "build", "completed"), event(5, "test", "queued"), event(6, "test", "assigned"), event(7, "test", "completed")}
	f.storeEvents(t, id, 0, 0, stored...)
	signal(t, id, eventsSignal, &v1.EventsResponse{Slices: 1, Events: held})
	want := words(slices.Concat(stored, held))
	if got := f.events(t, id, "", 0, nil); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := f.events(t, id, "test", 2, func() {}); !slices.Equal(got, want[5:]) {
		t.Errorf("got %v of one task", got)
	}
	// The first part of the workflow's events moves to the store between two pages.
	pages := 0
	got := f.events(t, id, "", 4, func() {
		if pages++; pages == 1 {
			f.storeEvents(t, id, 0, 1, held[:3]...)
			signal(t, id, eventsSignal, &v1.EventsResponse{Slices: 2, Events: held[3:]})
		}
	})
	if !slices.Equal(got, want) || pages != 1 {
		t.Errorf("after %d more pages got %v, want %v", pages, got, want)
	}
	f.storeEvents(t, id, 0, 2, held[3:]...)
	end(t, id, "failed")
	for _, size := range []int32{1, 3, 0} {
		if got := f.events(t, id, "", size, func() {}); !slices.Equal(got, want) {
			t.Errorf("pages of %d: got %v, want %v", size, got, want)
		}
	}

	other := f.submit(t, "eventful")
	res, err := f.client.ListRunEvents(t.Context(), connect.NewRequest(&v1.ListRunEventsRequest{Id: id, PageSize: 1}))
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.client.ListRunEvents(t.Context(), connect.NewRequest(&v1.ListRunEventsRequest{Id: other, PageToken: res.Msg.GetNextPageToken()}))
	wantCode(t, "the token of another run", err, connect.CodeInvalidArgument)
	_, err = f.client.ListRunEvents(t.Context(), connect.NewRequest(&v1.ListRunEventsRequest{Id: id, PageToken: "x"}))
	wantCode(t, "a token that is none", err, connect.CodeInvalidArgument)
	_, err = f.client.ListRunEvents(t.Context(), connect.NewRequest(&v1.ListRunEventsRequest{Id: id, Task: "tset"}))
	wantCode(t, "a task that the run does not have", err, connect.CodeNotFound)
}

// TestListOfEventsResumesAfterAnID checks that a list can resume after any of its events: whole or filtered by task, page by
// page, from the workflow or from the store.
func TestListOfEventsResumesAfterAnID(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "resumed")
	var all []*v1.Event
	for n := range 9 {
		at := int64(n)
		if n == 8 {
			at = 0 // the run learned of this event late, so it is not the last of a page
		}
		e := event(at, []string{"build", "test"}[n%2], "queued")
		e.Id = names.EventID(0, "", int64(n))
		all = append(all, e)
	}
	f.storeEvents(t, id, 0, 0, all[:4]...)
	signal(t, id, eventsSignal, &v1.EventsResponse{Slices: 1, Events: all[4:]})
	for _, after := range []int{0, 3, 4, 8} {
		for _, task := range []string{"", "test"} {
			var want, got []string
			readTo := ""
			for _, e := range all[after+1:] {
				if task == "" || e.GetTask() == task {
					want = append(want, e.GetId())
				}
			}
			for token := ""; ; {
				res, err := f.client.ListRunEvents(t.Context(), connect.NewRequest(&v1.ListRunEventsRequest{
					Id: id, Task: task, After: all[after].GetId(), PageSize: 2, PageToken: token,
				}))
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range res.Msg.GetItems() {
					got = append(got, e.GetId())
				}
				readTo = cmp.Or(res.Msg.GetAfter(), readTo)
				if token = res.Msg.GetNextPageToken(); token == "" {
					if last := all[len(all)-1].GetId(); readTo != last {
						t.Errorf("after %d of %q the events were read to %q, want %q", after, task, readTo, last)
					}
					break
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, want) {
				t.Errorf("after %d of %q come %v, want %v", after, task, got, want)
			}
		}
	}
	for _, after := range []string{"0-9", "1-0", "nonsense", "0-each[0]-3"} {
		_, err := f.client.ListRunEvents(t.Context(), connect.NewRequest(&v1.ListRunEventsRequest{Id: id, After: after}))
		wantCode(t, "after "+after, err, connect.CodeInvalidArgument)
	}
}

func TestEventsOfATerminatedRunAreListed(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "cut-short")
	f.storeEvents(t, id, 0, 0, event(0, "", "submitted"))
	signal(t, id, eventsSignal, &v1.EventsResponse{Slices: 1, Events: []*v1.Event{event(1, "build", "queued")}})
	f.get(t, id) // makes the run process the signal
	if err := temporalClient.TerminateWorkflow(t.Context(), id, "", ""); err != nil {
		t.Fatal(err)
	}
	if got := f.events(t, id, "", 0, nil); !slices.Equal(got, []string{" submitted", "build queued"}) {
		t.Errorf("got %v", got)
	}
}
