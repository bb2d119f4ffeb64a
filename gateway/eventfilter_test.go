package gateway

import (
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// pagedEvents reads all pages of a list of events.
func (f *fixture) pagedEvents(t *testing.T, req *v1.ListRunEventsRequest) (all []*v1.Event, pages int) {
	t.Helper()
	defer func() { req.PageToken = "" }()
	for {
		res, err := f.client.ListRunEvents(t.Context(), connect.NewRequest(req))
		if err != nil {
			t.Fatal(err)
		}
		if req.GetPageSize() > 0 && len(res.Msg.GetItems()) > int(req.GetPageSize()) {
			t.Errorf("a page of %d", len(res.Msg.GetItems()))
		}
		all, pages = append(all, res.Msg.GetItems()...), pages+1
		if req.PageToken = res.Msg.GetNextPageToken(); req.PageToken == "" {
			return all, pages
		}
	}
}

// TestListRunEventsFilters filters the events of a run by kind, node, time and task, for any start and page size.
func TestListRunEventsFilters(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "narrowed")
	var all []*v1.Event
	for n := range 12 {
		e := event(int64(n), []string{"build", "test"}[n%2], []string{"assigned", "failed", "queued"}[n%3])
		e.Id = names.EventID(0, "", int64(n))
		if n%3 < 2 {
			e.Node = []string{"a", "b"}[n/6]
		}
		all = append(all, e)
	}
	f.storeEvents(t, id, 0, 0, all[:5]...)
	signal(t, id, eventsSignal, &v1.EventsResponse{Slices: 1, Events: all[5:]})
	for what, test := range map[string]struct {
		req  *v1.ListRunEventsRequest
		want []int
	}{
		"kind":              {&v1.ListRunEventsRequest{Event: "failed"}, []int{1, 4, 7, 10}},
		"node":              {&v1.ListRunEventsRequest{Node: "b"}, []int{6, 7, 9, 10}},
		"time":              {&v1.ListRunEventsRequest{Since: all[3].GetAt(), Until: all[6].GetAt()}, []int{3, 4, 5}},
		"kind and task":     {&v1.ListRunEventsRequest{Event: "failed", Task: "test"}, []int{1, 7}},
		"all of them":       {&v1.ListRunEventsRequest{Event: "assigned", Task: "test", Node: "a", Since: all[1].GetAt(), Until: all[9].GetAt()}, []int{3}},
		"after an event":    {&v1.ListRunEventsRequest{Event: "failed", After: all[4].GetId()}, []int{7, 10}},
		"none":              {&v1.ListRunEventsRequest{Event: "killed"}, nil},
		"a node without":    {&v1.ListRunEventsRequest{Node: "c"}, nil},
		"a time without":    {&v1.ListRunEventsRequest{Until: all[0].GetAt()}, nil},
		"the newest by far": {&v1.ListRunEventsRequest{Since: all[11].GetAt()}, []int{11}},
	} {
		for _, size := range []int32{0, 2} {
			test.req.Id, test.req.PageSize = id, size
			found, _ := f.pagedEvents(t, test.req)
			var got []int
			for _, e := range found {
				got = append(got, slices.IndexFunc(all, func(of *v1.Event) bool { return of.GetId() == e.GetId() }))
				if e.GetRun() != id {
					t.Errorf("%s: an event of run %q", what, e.GetRun())
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("%s, pages of %d: got %v, want %v", what, size, got, test.want)
			}
		}
	}
	for what, test := range map[string]struct {
		req  *v1.ListRunEventsRequest
		text string
	}{
		"a kind that is none": {&v1.ListRunEventsRequest{Id: id, Event: "explode"}, "event"},
		"a quotation mark":    {&v1.ListRunEventsRequest{Node: "x' OR WorkflowId != '"}, "node"},
		"no time at all":      {&v1.ListRunEventsRequest{Id: id, Since: all[3].GetAt(), Until: all[3].GetAt()}, "must be later than since"},
		"after, of no run":    {&v1.ListRunEventsRequest{After: "0-1"}, "send the id of the run"},
	} {
		_, err := f.client.ListRunEvents(t.Context(), connect.NewRequest(test.req))
		wantCode(t, what, err, connect.CodeInvalidArgument)
		if err != nil && !strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
