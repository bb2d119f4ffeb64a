package runlogs_test

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/store/storekey"
	"switchyard/activities/store/storetest"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

func TestLogsOfATaskAreThoseOfItsNewestGeneration(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, "mem://")
	write(t, s, printed{"solo", 0, 0, 1, nil}, printed{"solo", 0, 1, 2, nil}, printed{"solo", 0, 2, 3, nil})
	for _, test := range []struct {
		what     string
		run      runview.TaskDelta
		req      *v1.StreamRunLogsRequest
		want     []string
		printing *printed
	}{
		{what: "kept", run: task("completed", 2, 3), want: []string{"solo g0 a2"}},
		{what: "kept, an older attempt", run: task("completed", 2, 3), req: &v1.StreamRunLogsRequest{Attempt: proto.Int32(1)}, want: []string{"solo g0 a1"}},
		{what: "waits to be done again", run: task("queued", 0, 4)},
		{what: "skipped this time", run: task("skipped", 0, 3)},
		{what: "runs again", run: task("running", 0, 4), printing: &printed{"solo", 1, 0, 4, nil}, want: []string{"solo g1 a0"}},
		{what: "put back in the same generation", run: task("completed", 0, 9), printing: &printed{"solo", 1, 0, 9, nil}, want: []string{"solo g1 a0"}},
		{what: "an older generation", run: task("completed", 0, 4), req: &v1.StreamRunLogsRequest{Generation: proto.Int32(0)}, want: []string{"solo g0 a2"}},
		{
			what: "an attempt of an older generation", run: task("completed", 0, 4),
			req: &v1.StreamRunLogsRequest{Generation: proto.Int32(0), Attempt: proto.Int32(0)}, want: []string{"solo g0 a0"},
		},
		{what: "an attempt that only the older generation has made", run: task("completed", 0, 4), req: &v1.StreamRunLogsRequest{Attempt: proto.Int32(1)}},
	} {
		if test.printing != nil {
			write(t, s, *test.printing)
		}
		req := test.req
		if req == nil {
			req = &v1.StreamRunLogsRequest{}
		}
		if got := newFollow(t, s, req).sendAll(test.run).lines; !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.what, got, test.want)
		}
	}
}

func TestLogsOfAFanOutAreThoseOfTheNewestAttemptOfEachInstance(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, "mem://")
	write(t, s,
		printed{"each[0]", 0, 0, 1, nil},
		printed{"each[0]", 0, 1, 2, nil},
		printed{storekey.BatchName("each", 1, 4), 0, 0, 1, []int{1, 2, 3, 4}},
		printed{storekey.BatchName("each", 1, 4), 0, 1, 2, []int{1, 4}}, // and instance 4 completes
		printed{"each[7]", 0, 0, 1, nil},                                // the list has become shorter since
		printed{storekey.BatchName("each", 5, 8), 0, 0, 1, []int{5, 8}},
		printed{"each[0]", 1, 0, 3, nil},
		printed{storekey.BatchName("each", 1, 3), 1, 0, 3, []int{1, 3}}, // 2 completed in the previous generation
	)
	fanOut := func(states ...string) runview.TaskDelta {
		d := runview.TaskDelta{Name: "each", Claim: 1, Task: &v1.Task{State: "running", Count: proto.Int32(int32(len(states)))}}
		for i, state := range states {
			d.Instances = append(d.Instances, &v1.Instance{Index: int32(i), State: state})
		}
		return d
	}
	six := fanOut("completed", "completed", "completed", "completed", "completed", "running")
	current := []string{"each[0] g1 a0", "each[1] g1 a0", "each[2] g0 a0", "each[3] g1 a0", "each[4] g0 a1"}
	for _, test := range []struct {
		what string
		run  runview.TaskDelta
		req  *v1.StreamRunLogsRequest
		want []string
	}{
		{"the run", six, &v1.StreamRunLogsRequest{}, current},
		{"the task", six, &v1.StreamRunLogsRequest{Task: "each"}, current},
		{"an instance in a batch", six, &v1.StreamRunLogsRequest{Task: "each[1]"}, []string{"each[1] g1 a0"}},
		{"an instance that was kept", six, &v1.StreamRunLogsRequest{Task: "each[2]"}, []string{"each[2] g0 a0"}},
		{"an instance that waits to be done again", six, &v1.StreamRunLogsRequest{Task: "each[5]"}, nil},
		{
			"an older generation", six, &v1.StreamRunLogsRequest{Task: "each", Generation: proto.Int32(0)},
			[]string{"each[0] g0 a1", "each[1] g0 a1", "each[2] g0 a0", "each[3] g0 a0", "each[4] g0 a1", "each[5] g0 a0", "each[7] g0 a0", "each[8] g0 a0"},
		},
		{
			"an older generation of a task that has not fanned out in this one", runview.TaskDelta{Name: "each", Task: &v1.Task{State: "pending"}},
			&v1.StreamRunLogsRequest{Generation: proto.Int32(0), Attempt: proto.Int32(1)}, []string{"each[0] g0 a1", "each[1] g0 a1", "each[4] g0 a1"},
		},
	} {
		got := newFollow(t, s, test.req).sendAll(test.run).lines
		slices.Sort(got)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.what, got, test.want)
		}
	}
}
