package gateway

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/logs"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

type logStream = connect.ServerStreamForClient[v1.StreamRunLogsResponse]

// writeLog writes the whole log of one attempt.
func writeLog(t *testing.T, s *store.Store, run, task string, attempt, claim int32, text string) {
	t.Helper()
	w := logs.NewWriter(s, logs.Attempt{Run: run, Task: task, Attempt: attempt, Claim: claim}, logs.Options{})
	print(t, w, "stdout", text)
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func print(t *testing.T, w *logs.Writer, stream, text string) {
	t.Helper()
	if _, err := w.Stream(stream).Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

// readLogs reads a stream to its end and returns what each task printed.
func readLogs(t *testing.T, stream *logStream) map[string]string {
	t.Helper()
	got := map[string]string{}
	for stream.Receive() {
		for _, e := range stream.Msg().GetEntries() {
			got[e.GetTask()] += string(e.GetData())
		}
	}
	if err := stream.Err(); err != nil {
		t.Fatal(err)
	}
	return got
}

func (f *fixture) logs(t *testing.T, req *v1.StreamRunLogsRequest) *logStream {
	t.Helper()
	stream, err := f.client.StreamRunLogs(t.Context(), connect.NewRequest(req))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = stream.Close() })
	return stream
}

// receive reads until the text want has arrived, and checks that all of it comes from one task and attempt.
func receive(t *testing.T, stream *logStream, task string, attempt int32, want string) {
	t.Helper()
	var got string
	for len(got) < len(want) {
		if !stream.Receive() {
			t.Fatalf("after %q the stream ended: %v", got, stream.Err())
		}
		for _, e := range stream.Msg().GetEntries() {
			if e.GetTask() != task || e.GetAttempt() != attempt {
				t.Errorf("got %v", e)
			}
			got += string(e.GetData())
		}
	}
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func assigned(attempt int32) *v1.Task {
	return &v1.Task{State: "assigned", Node: "n", Attempt: attempt, AssignedAt: timestamppb.Now()}
}

// TestFollowContinuesOverARetry follows a task over a retry to its end, while another task prints.
func TestFollowContinuesOverARetry(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "follows")
	all := f.logs(t, &v1.StreamRunLogsRequest{Id: id, Follow: true})
	one := f.logs(t, &v1.StreamRunLogsRequest{Id: id, Follow: true, Task: "build"})

	set(t, id, "build", 1, assigned(0))
	w := logs.NewWriter(f.config.Store, logs.Attempt{Run: id, Task: "build", Claim: 1}, logs.Options{})
	print(t, w, "stdout", "first\n")
	receive(t, one, "build", 0, "first\n")
	receive(t, all, "build", 0, "first\n")
	print(t, w, "stderr", "second\n")
	receive(t, one, "build", 0, "second\n")
	receive(t, all, "build", 0, "second\n")
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The second attempt starts and ends between two polls.
	writeLog(t, f.config.Store, id, "build", 1, 2, "missed\n")
	set(t, id, "build", 3, assigned(2))
	receive(t, one, "build", 1, "missed\n")
	receive(t, all, "build", 1, "missed\n")
	writeLog(t, f.config.Store, id, "build", 2, 3, "third\n")
	set(t, id, "build", 3, &v1.Task{State: "completed", Attempt: 2})
	if got := readLogs(t, one); got["build"] != "third\n" {
		t.Errorf("the rest of the task's log is %q", got)
	}
	writeLog(t, f.config.Store, id, "test", 0, 4, "other\n")
	set(t, id, "test", 4, &v1.Task{State: "completed"})
	end(t, id, "completed")
	if got := readLogs(t, all); got["build"] != "third\n" || got["test"] != "other\n" {
		t.Errorf("the rest of the run's log is %q", got)
	}
}

// TestFollowContinuesUntilLogsAreComplete ends a task and its run before the end of the log is in the store, as if the node had
// spooled it.
func TestFollowContinuesUntilLogsAreComplete(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "late", "build")
	set(t, id, "build", 1, assigned(0))
	one := f.logs(t, &v1.StreamRunLogsRequest{Id: id, Follow: true, Task: "build"})
	all := f.logs(t, &v1.StreamRunLogsRequest{Id: id, Follow: true})
	events, _ := f.openStream(t, "/v1/runs/"+id+"/logs")
	w := logs.NewWriter(f.config.Store, logs.Attempt{Run: id, Task: "build", Claim: 1}, logs.Options{})
	print(t, w, "stdout", "first\n")
	receive(t, one, "build", 0, "first\n")
	receive(t, all, "build", 0, "first\n")
	events.readEvents(t, 1)
	set(t, id, "build", 1, &v1.Task{State: "completed", Node: "n", Result: &v1.TaskResult{Stdout: "first\nlast\n"}})
	end(t, id, "completed")
	for watch := f.watch(t, id); watch.next(); { // the gateway knows the end
	}
	print(t, w, "stdout", "last\n")
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for what, stream := range map[string]*logStream{"task": one, "run": all} {
		if got := readLogs(t, stream); got["build"] != "last\n" {
			t.Errorf("the rest of the log of the %s is %q", what, got["build"])
		}
	}
	if rest := texts(t, events.rest()); !slices.Equal(rest, []string{"build last"}) {
		t.Errorf("the rest of the events is %q", rest)
	}
	again, _ := f.openStream(t, "/v1/runs/"+id+"/logs?tail=1")
	if rest := texts(t, again.rest()); !slices.Equal(rest, []string{"build last"}) {
		t.Errorf("a stream that begins after the end has %q", rest)
	}
}

// TestFollowSendsOutputPromptly checks that output arrives while the task is still printing.
func TestFollowSendsOutputPromptly(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "prompt")
	set(t, id, "build", 1, assigned(0))
	stream := f.logs(t, &v1.StreamRunLogsRequest{Id: id, Follow: true})
	w := logs.NewWriter(f.config.Store, logs.Attempt{Run: id, Task: "build", Claim: 1}, logs.Options{})
	defer w.Close(t.Context())
	for range 3 {
		begun := time.Now()
		print(t, w, "stdout", "tick\n")
		receive(t, stream, "build", 0, "tick\n")
		t.Logf("after %v", time.Since(begun))
	}
}

// TestLogsSelectAttemptsAndStreams reads the available logs: the newest attempt of each task, another attempt, or one stream.
func TestLogsSelectAttemptsAndStreams(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "printed", "a", "b", "never")
	writeLog(t, f.config.Store, id, "a", 0, 1, "a0\n")
	writeLog(t, f.config.Store, id, "a", 1, 3, "a1\n")
	w := logs.NewWriter(f.config.Store, logs.Attempt{Run: id, Task: "b", Claim: 2}, logs.Options{})
	print(t, w, "stdout", "out\n")
	print(t, w, "stderr", "err\n")
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	set(t, id, "a", 3, &v1.Task{State: "failed", Attempt: 1})
	set(t, id, "b", 2, assigned(0))
	zero, nine := int32(0), int32(9)
	for _, closed := range []bool{false, true} {
		if closed {
			end(t, id, "failed")
		}
		for _, test := range []struct {
			req  *v1.StreamRunLogsRequest
			a, b string
		}{
			{&v1.StreamRunLogsRequest{}, "a1\n", "out\nerr\n"},
			{&v1.StreamRunLogsRequest{Task: "a"}, "a1\n", ""},
			{&v1.StreamRunLogsRequest{Task: "a", Attempt: &zero}, "a0\n", ""},
			{&v1.StreamRunLogsRequest{Attempt: &zero}, "a0\n", "out\nerr\n"},
			{&v1.StreamRunLogsRequest{Stream: "stderr"}, "", "err\n"},
			{&v1.StreamRunLogsRequest{Task: "never"}, "", ""},
		} {
			test.req.Id = id
			got := readLogs(t, f.logs(t, test.req))
			if got["a"] != test.a || got["b"] != test.b || got["never"] != "" {
				t.Errorf("%v: got %q", test.req, got)
			}
		}
		for _, follow := range []bool{false, true} {
			stream := f.logs(t, &v1.StreamRunLogsRequest{Id: id, Task: "nevr", Follow: follow})
			stream.Receive()
			wantCode(t, "an unknown task", stream.Err(), connect.CodeNotFound)
			if !strings.Contains(stream.Err().Error(), "did you mean never?") {
				t.Errorf("the error is %v", stream.Err())
			}
			if missingRun(stream.Err()) {
				t.Errorf("the run is told to be missing: %v", stream.Err())
			}
		}
		stream := f.logs(t, &v1.StreamRunLogsRequest{Id: id, Task: "a", Attempt: &nine})
		stream.Receive()
		wantCode(t, "an unknown attempt", stream.Err(), connect.CodeNotFound)
	}
}

// TestResumedLogStreamRepeatsNothing checks that a stream that resumes another one sends exactly what that one did not, even
// if attempts have started and ended meanwhile.
func TestResumedLogStreamRepeatsNothing(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "resumes", "a", "b", "c")
	writeLog(t, f.config.Store, id, "a", 0, 1, "a0\n")
	writeLog(t, f.config.Store, id, "a", 1, 2, "a1\n")
	set(t, id, "a", 2, &v1.Task{State: "failed", Attempt: 1})
	w := logs.NewWriter(f.config.Store, logs.Attempt{Run: id, Task: "b", Claim: 3}, logs.Options{})
	print(t, w, "stdout", "b0\n")
	set(t, id, "b", 3, assigned(0))
	stream := f.logs(t, &v1.StreamRunLogsRequest{Id: id, Follow: true})
	positions := map[string]*v1.LogPosition{}
	var text string
	for !strings.Contains(text, "a1\n") || !strings.Contains(text, "b0\n") {
		if !stream.Receive() {
			t.Fatal(stream.Err())
		}
		at := stream.Msg().GetPosition()
		positions[at.GetTask()] = at
		for _, e := range stream.Msg().GetEntries() {
			text += string(e.GetData())
		}
	}
	if strings.Contains(text, "a0") {
		t.Errorf("the first stream has %q", text)
	}
	_ = stream.Close()
	print(t, w, "stdout", "more of b0\n")
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	writeLog(t, f.config.Store, id, "b", 1, 4, "b1\n")
	writeLog(t, f.config.Store, id, "b", 2, 5, "b2\n")
	set(t, id, "b", 5, &v1.Task{State: "completed", Attempt: 2})
	writeLog(t, f.config.Store, id, "c", 0, 6, "c0\n")
	writeLog(t, f.config.Store, id, "c", 1, 7, "c1\n")
	set(t, id, "c", 7, &v1.Task{State: "completed", Attempt: 1})
	end(t, id, "failed")
	for _, follow := range []bool{false, true} {
		req := &v1.StreamRunLogsRequest{Id: id, Follow: follow}
		for _, at := range positions {
			req.Resume = append(req.Resume, at)
		}
		got := readLogs(t, f.logs(t, req))
		if got["a"] != "" || got["b"] != "more of b0\nb1\nb2\n" || got["c"] != "c0\nc1\n" {
			t.Errorf("follow %t: resumed with %q", follow, got)
		}
	}
}

// TestMissingLogsAreReported checks that an attempt with output that is not in the store is reported with its node.
func TestMissingLogsAreReported(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "misses", "a", "b", "c", "d")
	writeLog(t, f.config.Store, id, "a", 0, 1, "a0\n")
	said := func(text string) *v1.Task {
		return &v1.Task{State: "completed", Node: "far", Result: &v1.TaskResult{Stdout: text}}
	}
	set(t, id, "a", 1, said("a0\n"))
	set(t, id, "b", 2, said("b0\n"))
	set(t, id, "c", 3, said(""))
	cached := said("another run's\n")
	cached.CachedFrom = "other-0k"
	set(t, id, "d", 4, cached)
	for _, closed := range []bool{false, true} {
		if closed {
			end(t, id, "completed")
		}
		for _, req := range []*v1.StreamRunLogsRequest{{Id: id}, {Id: id, Task: "b"}, {Id: id, Task: "a"}} {
			var missing []string
			stream := f.logs(t, req)
			for stream.Receive() {
				if m := stream.Msg().GetMissing(); m != nil {
					missing = append(missing, m.GetTask()+" on "+m.GetNode())
				}
			}
			if err := stream.Err(); err != nil {
				t.Fatal(err)
			}
			want := "b on far"
			if req.GetTask() == "a" {
				want = ""
			}
			if got := strings.Join(missing, ", "); got != want {
				t.Errorf("closed %t, %v: missing is %q, want %q", closed, req, got, want)
			}
		}
	}
}

// TestReusedResultHasNoMissingLog checks that an attempt that returned the record of an earlier one has no
// missing output of its own.
func TestReusedResultHasNoMissingLog(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "answered", "a", "each", "b")
	writeLog(t, f.config.Store, id, "a", 0, 1, "a0\n")
	writeLog(t, f.config.Store, id, "each[0]", 0, 1, "e0\n")
	said := &v1.TaskResult{Stdout: "said\n"}
	count := int32(1)
	signal(t, id, setSignal, &v1.StatusResponse{
		Run: &v1.Run{Tasks: map[string]*v1.Task{
			"a": {State: "completed", Node: "far", Attempt: 1, Result: said},
			"b": {State: "completed", Node: "far", Attempt: 2, Result: said},
			"each": {State: "completed", Count: &count, Instances: []*v1.Instance{
				{State: "completed", Node: "far", Attempt: 1, Result: said},
			}},
		}},
		Claims: map[string]int32{"a": 2, "b": 3, "each[0]": 2},
		Records: map[string]string{
			"a": storekey.Result(id, 0, "a", 0), "b": storekey.Result(id, 0, "b", 1), "each[0]": storekey.Result(id, 0, "each[0]", 0),
		},
	})
	end(t, id, "completed")
	got := ""
	stream := f.logs(t, &v1.StreamRunLogsRequest{Id: id})
	for stream.Receive() {
		for _, e := range stream.Msg().GetEntries() {
			got += string(e.GetData())
		}
		if m := stream.Msg().GetMissing(); m != nil {
			got += fmt.Sprintf("attempt %d of %s is missing\n", m.GetAttempt(), m.GetTask())
		}
	}
	if want := "a0\nattempt 1 of b is missing\ne0\n"; got != want || stream.Err() != nil {
		t.Errorf("got %q, want %q, %v", got, want, stream.Err())
	}
}

func TestLogsStartAtSince(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "since", "a")
	writeLog(t, f.config.Store, id, "a", 0, 1, "a0\n")
	set(t, id, "a", 1, &v1.Task{State: "completed"})
	for age, want := range map[time.Duration]string{time.Hour: "a0\n", -time.Hour: ""} {
		got := readLogs(t, f.logs(t, &v1.StreamRunLogsRequest{Id: id, Since: timestamppb.New(time.Now().Add(-age))}))
		if got["a"] != want {
			t.Errorf("since %s ago: %q", age, got["a"])
		}
	}
}
