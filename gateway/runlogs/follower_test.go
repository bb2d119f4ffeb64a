package runlogs_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/logs"
	"switchyard/activities/store/storetest"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

func TestFollowerSendsOneTaskAfterTheOther(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, "mem://")
	write(t, s, printed{"late", 1, 0, 1, nil}, printed{"early", 1, 0, 1, nil}, printed{"unasked", 1, 0, 1, nil})
	late, early := solo("late", "completed"), solo("early", "completed")
	early.Task.StartedAt, late.Task.StartedAt = timestamppb.New(time.Unix(1, 0)), timestamppb.New(time.Unix(2, 0))
	got := newFollow(t, s, &v1.StreamRunLogsRequest{}).sendAll(late, early, runview.TaskDelta{Name: "waits", Task: &v1.Task{State: "pending"}})
	if want := []string{"early early g1 a0", "late late g1 a0"}; !slices.Equal(got.text, want) {
		t.Errorf("sent %q, want %q in the order of their starts", got.text, want)
	}
}

// TestResumedFollowerRepeatsNothing resumes a stream from the positions that it has sent, when there is more of one log, later
// attempts have started and ended, and another task has printed.
func TestResumedFollowerRepeatsNothing(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, "mem://")
	first, second := solo("a", "running"), solo("b", "running")
	printWord := func(name, word string) {
		printTo(t, s, logs.Attempt{Run: "ci-0k", Generation: 1, Task: name, Claim: 1}, word, false)
	}
	printWord("a", "a0")
	printWord("a", "a1")
	printWord("b", "b0")
	got := newFollow(t, s, &v1.StreamRunLogsRequest{})
	got.update(first, second)
	var resume []*v1.LogPosition
	for _, p := range got.positions {
		resume = append(resume, p)
	}
	if slices.Sort(got.text); len(resume) != 2 || !slices.Equal(got.text, []string{"a a0", "a a1", "b b0"}) {
		t.Fatalf("sent %q, with the positions %v", got.text, resume)
	}
	printWord("a", "a2")
	write(t, s, printed{"b", 1, 1, 2, nil}, printed{"b", 1, 2, 3, nil})
	second = runview.TaskDelta{Name: "b", Claim: 3, Task: &v1.Task{State: "completed", Attempt: 2}}
	printWord("c", "c0")
	rest := newFollow(t, s, &v1.StreamRunLogsRequest{Resume: resume}).sendAll(first, second, solo("c", "completed"))
	slices.Sort(rest.text)
	if want := []string{"a a2", "b b g1 a1", "b b g1 a2", "c c0"}; !slices.Equal(rest.text, want) {
		t.Errorf("the resumed stream sends %q, want %q", rest.text, want)
	}
}

func TestFollowerSendsOnlyTheWantedOutput(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, "mem://")
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
		got := newFollow(t, s, test.req).sendAll(solo("a", "completed"), solo("b", "completed"))
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
	s := storetest.Open(t, "mem://")
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
		if got := newFollow(t, s, &v1.StreamRunLogsRequest{Task: task}).sendAll(lost, kept, silent, each).missing(); !slices.Equal(got, want) {
			t.Errorf("of %q these are missing: %q, want %q", task, got, want)
		}
	}
}

// TestFollowerSendsEveryStartOfTheWantedAttempt checks that the output of an attempt that was started again under the same number
// can be read, and that only the newest start is sent if no attempt is asked for.
func TestFollowerSendsEveryStartOfTheWantedAttempt(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t, "mem://")
	for _, name := range []string{"solo", "each[1]"} {
		for claim, word := range []string{"first", "second"} {
			printTo(t, s, logs.Attempt{Run: "ci-0k", Generation: 1, Task: name, Claim: int32(claim + 1)}, word, claim == 1)
		}
	}
	each := solo("each", "running")
	each.Task.Count, each.Instances = proto.Int32(2), []*v1.Instance{{State: "queued"}, {Index: 1, State: "running"}}
	for of, newest := range map[string]runview.TaskDelta{"solo": task("running", 0, 2), "each": each, "each[1]": each} {
		newFollow(t, s, &v1.StreamRunLogsRequest{Task: of}).sendAll(newest).expect("the newest start of "+of, "second")
		asked := newFollow(t, s, &v1.StreamRunLogsRequest{Task: of, Attempt: proto.Int32(0)}).sendAll(newest)
		asked.expect("attempt 0 of "+of, "first", "second")
		var resume []*v1.LogPosition
		for _, p := range asked.positions {
			resume = append(resume, p)
		}
		newFollow(t, s, &v1.StreamRunLogsRequest{Task: of, Attempt: proto.Int32(0), Resume: resume}).sendAll(newest).expect("the rest of attempt 0 of " + of)
	}
}
