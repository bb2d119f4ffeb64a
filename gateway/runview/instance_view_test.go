package runview

import (
	"strings"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/phrase"
	"testing"

	"google.golang.org/protobuf/proto"
)

// TestFanOutShowsWhatHoldsUpItsInstances checks that an open fan-out has the notice of its first instance that has one.
func TestFanOutShowsWhatHoldsUpItsInstances(t *testing.T) {
	t.Parallel()
	const (
		one, two = "each[1]#1", "each[2]#1"
		restarts = "each[1]: runs on while the worker of node b restarts"
	)
	left, waits := RunningAttempt{left: true}, RunningAttempt{waits: phrase.StoreWait}
	v := NewView("w-1")
	report := func(state string) []*historyv1.StatusResponse {
		return []*historyv1.StatusResponse{{
			Run: &v1.Run{Tasks: map[string]*v1.Task{"each": {
				State: state, Count: proto.Int32(3), Counts: map[string]int32{v1.TaskAssigned: 3},
				Instances: []*v1.Instance{
					{Index: 0, State: v1.TaskAssigned, Node: "a"}, {Index: 1, State: v1.TaskAssigned, Node: "b"}, {Index: 2, State: v1.TaskAssigned, Node: "c"},
				},
			}}},
			Claims: map[string]int32{"each[0]": 1, "each[1]": 1, "each[2]": 1}, Revision: 1,
		}}
	}
	for _, test := range []struct {
		report  []*historyv1.StatusResponse
		running map[string]RunningAttempt
		want    string
	}{
		{report(v1.TaskRunning), map[string]RunningAttempt{"each[0]#1": {}, one: {}, two: {}}, ""},
		{nil, map[string]RunningAttempt{"each[0]#1": {}, one: left, two: {}}, restarts},
		{nil, map[string]RunningAttempt{"each[0]#1": {}, one: left, two: waits}, restarts + "; and 1 more is held up"},
		{nil, map[string]RunningAttempt{"each[0]#1": waits, one: left, two: waits}, "each[0]: " + phrase.StoreWait + "; and 2 more are held up"},
		{nil, map[string]RunningAttempt{"each[0]#1": {}}, ""},
		{report(v1.TaskLost), map[string]RunningAttempt{one: left}, ""},
	} {
		before := v.newest
		v.Update(test.report, test.running)
		if got := v.Tasks["each"].Brief.GetNotice(); got != test.want || len(v.Since(before).Tasks) != 1 {
			t.Errorf("%v: %q, want %q in an update for watchers: %v", test.running, got, test.want, v.Since(before))
		}
	}
}

// TestInstancesOfABatchRunOneByOne checks which instances are shown as running: a single one, and those of a batch one
// after the other.
func TestInstancesOfABatchRunOneByOne(t *testing.T) {
	v := NewView("w-1")
	lead := proto.Int32(1)
	v.Update([]*historyv1.StatusResponse{{
		Run: &v1.Run{Tasks: map[string]*v1.Task{"each": {
			State: "running", Count: proto.Int32(6), Counts: map[string]int32{"assigned": 6},
			Instances: []*v1.Instance{
				{Index: 0, State: "assigned"}, {Index: 1, State: "assigned", Lead: lead}, {Index: 2, State: "assigned", Lead: lead},
				{Index: 3, State: "assigned", Lead: lead}, {Index: 4, State: "queued"},
			},
		}}},
		Claims: map[string]int32{"each[0]": 2, "each[1]": 5, "each[2]": 1}, Revision: 1,
	}}, nil)
	for _, test := range []struct {
		running       map[string]RunningAttempt
		want          string
		assigned, run int32
	}{
		{nil, "assigned assigned assigned assigned queued", 6, 0},
		{map[string]RunningAttempt{"each[0]#2": {}, "each[1]#5": {}}, "running running assigned assigned queued", 4, 2},
		{map[string]RunningAttempt{"each[1]#5": {ended: 1}}, "assigned running running assigned queued", 4, 2},
		{map[string]RunningAttempt{"each[1]#4": {}, "each[5]#9": {}}, "assigned assigned assigned assigned queued", 5, 1},
		{nil, "assigned assigned assigned assigned queued", 6, 0},
	} {
		before := v.newest
		v.Update(nil, test.running)
		var states []string
		for _, i := range v.Tasks["each"].Instances {
			states = append(states, i.Brief.GetState())
		}
		counts := v.Tasks["each"].Brief.GetCounts()
		if got := strings.Join(states, " "); got != test.want || counts["assigned"] != test.assigned || counts["running"] != test.run {
			t.Errorf("%v: %s, %v", test.running, got, counts)
		}
		n := v.Since(before)
		for _, i := range n.Tasks {
			if len(i.Instances) > 4 {
				t.Errorf("%d instances are news", len(i.Instances))
			}
		}
	}
}
