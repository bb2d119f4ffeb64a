package runlogs_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/logs"
	"switchyard/activities/store"
	"switchyard/gateway/runlogs"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

// solo returns the state of a task whose only attempt was dispatched once.
func solo(name, state string) runview.TaskDelta {
	return runview.TaskDelta{Name: name, Claim: 1, Task: &v1.Task{State: state, AssignedAt: timestamppb.Now()}}
}

// writeChunk adds a chunk with a word to the log of the only attempt of a task.
func writeChunk(t *testing.T, s *store.Store, name, word string) {
	t.Helper()
	w, err := logs.Resume(t.Context(), s, logs.Attempt{Run: "ci-0k", Generation: 1, Task: name, Claim: 1}, logs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	// What is written from the start to the position of the newest word is in the log already.
	for _, text := range []string{w.Position(), word + " "} {
		w.Mark(text)
		if _, err := w.Stream(logs.Stdout).Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Suspend(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// stream collects what a follower sends.
type stream struct {
	text      []string // "<task> <text>" of each entry
	missing   []string
	positions map[string]*v1.LogPosition
}

// newStream returns a follower for a request and what it sends.
func newStream(s *store.Store, req *v1.StreamRunLogsRequest) (*runlogs.Follower, *stream) {
	sent := &stream{positions: map[string]*v1.LogPosition{}}
	return runlogs.New("ci-0k", s, req, func(m *v1.StreamRunLogsResponse) error {
		for _, e := range m.GetEntries() {
			sent.text = append(sent.text, e.GetTask()+" "+strings.TrimSpace(string(e.GetData())))
		}
		if p := m.GetPosition(); p != nil {
			sent.positions[p.GetTask()] = p
		}
		if m.GetMissing() != nil {
			sent.missing = append(sent.missing, fmt.Sprintf("%s a%d on %s", m.GetMissing().GetTask(), m.GetMissing().GetAttempt(), m.GetMissing().GetNode()))
		}
		return nil
	}), sent
}

func TestFollowerSendsOneTaskAfterTheOther(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	write(t, s, printed{"late", 1, 0, 1, nil}, printed{"early", 1, 0, 1, nil}, printed{"unasked", 1, 0, 1, nil})
	late, early := solo("late", "completed"), solo("early", "completed")
	early.Task.StartedAt, late.Task.StartedAt = timestamppb.New(time.Unix(1, 0)), timestamppb.New(time.Unix(2, 0))
	f, got := newStream(s, &v1.StreamRunLogsRequest{})
	if err := f.SendAll(t.Context(), delta(late, early, runview.TaskDelta{Name: "waits", Task: &v1.Task{State: "pending"}})); err != nil {
		t.Fatal(err)
	}
	if want := []string{"early early g1 a0", "late late g1 a0"}; !slices.Equal(got.text, want) {
		t.Errorf("sent %q, want %q in the order of their starts", got.text, want)
	}
}

// TestResumedFollowerRepeatsNothing resumes a stream from the positions that it has sent, when there is more of one log, later
// attempts have started and ended, and another task has printed.
func TestResumedFollowerRepeatsNothing(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	first, second := solo("a", "running"), solo("b", "running")
	writeChunk(t, s, "a", "a0")
	writeChunk(t, s, "a", "a1")
	writeChunk(t, s, "b", "b0")
	f, got := newStream(s, &v1.StreamRunLogsRequest{})
	if err := f.Update(t.Context(), delta(first, second)); err != nil {
		t.Fatal(err)
	}
	if err := f.SendNew(t.Context()); err != nil {
		t.Fatal(err)
	}
	var resume []*v1.LogPosition
	for _, p := range got.positions {
		resume = append(resume, p)
	}
	if slices.Sort(got.text); len(resume) != 2 || !slices.Equal(got.text, []string{"a a0", "a a1", "b b0"}) {
		t.Fatalf("sent %q, with the positions %v", got.text, resume)
	}
	writeChunk(t, s, "a", "a2")
	write(t, s, printed{"b", 1, 1, 2, nil}, printed{"b", 1, 2, 3, nil})
	second = runview.TaskDelta{Name: "b", Claim: 3, Task: &v1.Task{State: "completed", Attempt: 2}}
	writeChunk(t, s, "c", "c0")
	again, rest := newStream(s, &v1.StreamRunLogsRequest{Resume: resume})
	if err := again.SendAll(t.Context(), delta(first, second, solo("c", "completed"))); err != nil {
		t.Fatal(err)
	}
	slices.Sort(rest.text)
	if want := []string{"a a2", "b b g1 a1", "b b g1 a2", "c c0"}; !slices.Equal(rest.text, want) {
		t.Errorf("the resumed stream sends %q, want %q", rest.text, want)
	}
}

func TestFollowerSendsOnlyTheWantedOutput(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	for task, streams := range map[string][]string{"a": {logs.Stdout, logs.Stderr}, "b": {logs.Stdout}} {
		w := logs.NewWriter(s, logs.Attempt{Run: "ci-0k", Generation: 1, Task: task, Claim: 1}, logs.Options{})
		for _, stream := range streams {
			if _, err := fmt.Fprintf(w.Stream(stream), "to %s\n", stream); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		what string
		req  *v1.StreamRunLogsRequest
		want []string
	}{
		{"everything", &v1.StreamRunLogsRequest{}, []string{"a to stderr", "a to stdout", "b to stdout"}},
		{"a stream", &v1.StreamRunLogsRequest{Stream: "stderr"}, []string{"a to stderr"}},
		{"a task", &v1.StreamRunLogsRequest{Task: "b"}, []string{"b to stdout"}},
		{"an attempt that is none", &v1.StreamRunLogsRequest{Attempt: proto.Int32(3)}, nil},
		{"since before", &v1.StreamRunLogsRequest{Since: timestamppb.New(time.Now().Add(-time.Hour))}, []string{"a to stderr", "a to stdout", "b to stdout"}},
		{"since later", &v1.StreamRunLogsRequest{Since: timestamppb.New(time.Now().Add(time.Hour))}, nil},
	} {
		f, got := newStream(s, test.req)
		if err := f.SendAll(t.Context(), delta(solo("a", "completed"), solo("b", "completed"))); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got.text)
		if !slices.Equal(got.text, test.want) {
			t.Errorf("%s: %q, want %q", test.what, got.text, test.want)
		}
	}
}

// TestFollowerReportsOutputThatTheStoreLacks checks that a client learns of output that is in the result of a task or an
// instance but not in the store, and of nothing else.
func TestFollowerReportsOutputThatTheStoreLacks(t *testing.T) {
	t.Parallel()
	s := openStore(t)
	write(t, s, printed{"kept", 1, 0, 1, nil}, printed{"each[1]", 1, 0, 1, nil})
	printer := runview.Printer{Node: "n1"}
	lost, kept, silent := solo("lost", "completed"), solo("kept", "completed"), solo("silent", "completed")
	lost.Printer, kept.Printer = &printer, &printer
	each := solo("each", "completed")
	each.Task.Count = proto.Int32(3)
	each.Instances = []*v1.Instance{{State: "completed"}, {Index: 1, State: "completed"}, {Index: 2, State: "completed"}}
	each.Printers = map[int32]runview.Printer{0: printer, 1: printer}
	for task, want := range map[string][]string{
		"":        {"each[0] a0 on n1", "lost a0 on n1"},
		"kept":    nil,
		"each":    {"each[0] a0 on n1"},
		"each[0]": {"each[0] a0 on n1"},
		"each[1]": nil,
	} {
		f, got := newStream(s, &v1.StreamRunLogsRequest{Task: task})
		if err := f.SendAll(t.Context(), delta(lost, kept, silent, each)); err != nil {
			t.Fatal(err)
		}
		slices.Sort(got.missing)
		if !slices.Equal(got.missing, want) {
			t.Errorf("of %q these are missing: %q, want %q", task, got.missing, want)
		}
	}
}
