package runlogs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/logs"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/runlogs"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

// printed is the output of one dispatch: a line "<instance> g<generation> a<attempt>" for each of its instances, or
// for its task.
type printed struct {
	task                       string
	generation, attempt, claim int32
	instances                  []int
}

func write(t *testing.T, s *store.Store, all ...printed) {
	t.Helper()
	for _, p := range all {
		w := logs.NewWriter(s, logs.Attempt{Run: "ci-0k", Generation: p.generation, Task: p.task, Attempt: p.attempt, Claim: p.claim}, logs.Options{})
		say := func(name string) {
			if _, err := fmt.Fprintf(w.Stream(logs.Stdout), "%s g%d a%d\n", name, p.generation, p.attempt); err != nil {
				t.Fatal(err)
			}
		}
		for _, i := range p.instances {
			name := fmt.Sprintf("each[%d]", i)
			w.Begin(name, p.attempt, p.claim)
			say(name)
		}
		if p.instances == nil {
			say(p.task)
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// sent returns the lines that a follower sends for a run.
func sent(t *testing.T, s *store.Store, req *v1.StreamRunLogsRequest, n runview.Delta) []string {
	t.Helper()
	var lines []string
	f := runlogs.New("ci-0k", s, req, func(m *v1.StreamRunLogsResponse) error {
		for _, e := range m.GetEntries() {
			lines = append(lines, strings.Split(strings.TrimSpace(string(e.GetData())), "\n")...)
		}
		return nil
	})
	if err := f.SendAll(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	return lines
}

func openStore(t *testing.T) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), "mem://")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// delta returns a delta of a run whose newest generation is 1.
func delta(tasks ...runview.TaskDelta) runview.Delta {
	return runview.Delta{Run: &v1.Run{Id: "ci-0k", Generation: 1}, Home: "ci-0k", Tasks: tasks}
}

func task(state string, attempt, claim int32) runview.TaskDelta {
	return runview.TaskDelta{Name: "solo", Claim: claim, Task: &v1.Task{State: state, Attempt: attempt, AssignedAt: timestamppb.Now()}}
}

func TestLogsOfATaskAreThoseOfItsNewestGeneration(t *testing.T) {
	t.Parallel()
	s := openStore(t)
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
		if got := sent(t, s, req, delta(test.run)); !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.what, got, test.want)
		}
	}
}

func TestLogsOfAFanOutAreThoseOfTheNewestAttemptOfEachInstance(t *testing.T) {
	t.Parallel()
	s := openStore(t)
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
		got := sent(t, s, test.req, delta(test.run))
		slices.Sort(got)
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: %q, want %q", test.what, got, test.want)
		}
	}
}
