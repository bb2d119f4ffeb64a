package runevents

import (
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// TestFilterSelectsEvents filters events by kind, node, time and task.
func TestFilterSelectsEvents(t *testing.T) {
	t.Parallel()
	var all []*v1.Event
	for n := range 12 {
		e := eventAt(int64(n), []string{"build", "test[1]"}[n%2], []string{"assigned", "failed", "queued"}[n%3])
		if n%3 < 2 {
			e.Node = []string{"a", "b"}[n/6]
		}
		all = append(all, e)
	}
	for what, test := range map[string]struct {
		req  *v1.ListRunEventsRequest
		want []int
	}{
		"kind":              {&v1.ListRunEventsRequest{Event: "failed"}, []int{1, 4, 7, 10}},
		"node":              {&v1.ListRunEventsRequest{Node: "b"}, []int{6, 7, 9, 10}},
		"time":              {&v1.ListRunEventsRequest{Since: all[3].GetAt(), Until: all[6].GetAt()}, []int{3, 4, 5}},
		"kind and task":     {&v1.ListRunEventsRequest{Event: "failed", Task: "test"}, []int{1, 7}},
		"an instance":       {&v1.ListRunEventsRequest{Event: "failed", Task: "test[1]"}, []int{1, 7}},
		"another instance":  {&v1.ListRunEventsRequest{Task: "test[2]"}, nil},
		"all of them":       {&v1.ListRunEventsRequest{Event: "assigned", Task: "test", Node: "a", Since: all[1].GetAt(), Until: all[9].GetAt()}, []int{3}},
		"none":              {&v1.ListRunEventsRequest{Event: "killed"}, nil},
		"a time without":    {&v1.ListRunEventsRequest{Until: all[0].GetAt()}, nil},
		"the newest by far": {&v1.ListRunEventsRequest{Since: all[11].GetAt()}, []int{11}},
	} {
		f, err := NewFilter(test.req)
		if err != nil {
			t.Fatal(err)
		}
		var got []int
		for n, e := range all {
			if f.Wants(e) {
				got = append(got, n)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", what, got, test.want)
		}
	}
	for want, req := range map[string]*v1.ListRunEventsRequest{
		"node":                     {Node: "x' OR WorkflowId != '"},
		"must be later than since": {Since: all[3].GetAt(), Until: all[3].GetAt()},
		"send the id of the run":   {After: "0-1"},
		"is not an event id":       {Id: "ci-1", After: "nonsense"},
	} {
		if _, err := NewFilter(req); rpcerror.CodeOf(err) != connect.CodeInvalidArgument || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", req, err, want)
		}
	}
}
