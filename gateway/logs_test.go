package gateway

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/logs"
	"switchyard/activities/store"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/visibility"
)

type logStream = connect.ServerStreamForClient[v1.StreamRunLogsResponse]

// writeLog writes the whole log of one attempt.
func writeLog(t *testing.T, s *store.Store, run, task string, attempt, claim int32, text string) {
	t.Helper()
	w := logs.NewWriter(s, logs.Attempt{Run: run, Task: task, Attempt: attempt, Claim: claim}, logs.Options{})
	print(t, w, "stdout", text)
	closeLog(t, w)
}

func print(t *testing.T, w *logs.Writer, stream, text string) {
	t.Helper()
	if _, err := w.Stream(stream).Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
}

func closeLog(t *testing.T, w *logs.Writer) {
	t.Helper()
	if err := w.Close(t.Context()); err != nil {
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
	both := []*logStream{f.logs(t, &v1.StreamRunLogsRequest{Id: id, Follow: true}), f.logs(t, &v1.StreamRunLogsRequest{Id: id, Follow: true, Task: "build"})}
	want := func(attempt int32, text string) {
		t.Helper()
		for _, stream := range both {
			receive(t, stream, "build", attempt, text)
		}
	}
	set(t, id, "build", 1, assigned(0))
	w := logs.NewWriter(f.config.Store, logs.Attempt{Run: id, Task: "build", Claim: 1}, logs.Options{})
	print(t, w, "stdout", "first\n")
	want(0, "first\n")
	print(t, w, "stderr", "second\n")
	want(0, "second\n")
	closeLog(t, w)
	// The second attempt starts and ends between two polls.
	writeLog(t, f.config.Store, id, "build", 1, 2, "missed\n")
	set(t, id, "build", 3, assigned(2))
	want(1, "missed\n")
	writeLog(t, f.config.Store, id, "build", 2, 3, "third\n")
	set(t, id, "build", 3, &v1.Task{State: "completed", Attempt: 2})
	if got := readLogs(t, both[1]); got["build"] != "third\n" {
		t.Errorf("the rest of the task's log is %q", got)
	}
	writeLog(t, f.config.Store, id, "test", 0, 4, "other\n")
	set(t, id, "test", 4, &v1.Task{State: "completed"})
	end(t, id, "completed")
	if got := readLogs(t, both[0]); got["build"] != "third\n" || got["test"] != "other\n" {
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
	closeLog(t, w)
	for what, stream := range map[string]*logStream{"task": one, "run": all} {
		if got := readLogs(t, stream); got["build"] != "last\n" {
			t.Errorf("the rest of the log of the %s is %q", what, got["build"])
		}
	}
	if rest := texts(t, events.rest()); !slices.Equal(rest, []string{"build last"}) {
		t.Errorf("the rest of the events is %q", rest)
	}
}

// TestLogsAreReadAtAnyTime reads the available logs of a run while it is open and after its end, and asks for what it does not have.
func TestLogsAreReadAtAnyTime(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "printed", "a", "b", "never")
	writeLog(t, f.config.Store, id, "a", 0, 1, "a0\n")
	writeLog(t, f.config.Store, id, "a", 1, 3, "a1\n")
	writeLog(t, f.config.Store, id, "b", 0, 2, "b0\n")
	signal(t, id, setSignal, &historyv1.StatusResponse{
		Run:    &v1.Run{Tasks: map[string]*v1.Task{"a": {State: "failed", Attempt: 1}, "b": {State: "completed", Node: "far", Result: &v1.TaskResult{Stdout: "b0\n"}}, "never": {State: "completed", Node: "far", Result: &v1.TaskResult{Stdout: "lost\n"}}}},
		Claims: map[string]int32{"a": 3, "b": 2, "never": 4},
	})
	for _, hasEnded := range []bool{false, true} {
		if hasEnded {
			end(t, id, "failed")
		}
		if got := readLogs(t, f.logs(t, &v1.StreamRunLogsRequest{Id: id})); !maps.Equal(got, map[string]string{"a": "a1\n", "b": "b0\n"}) {
			t.Errorf("ended %t: got %q", hasEnded, got)
		}
		missing := f.logs(t, &v1.StreamRunLogsRequest{Id: id, Task: "never"})
		if !missing.Receive() || missing.Msg().GetMissing().GetTask() != "never" || missing.Msg().GetMissing().GetNode() != "far" {
			t.Errorf("ended %t: of a log that is not in the store: %v, %v", hasEnded, missing.Msg(), missing.Err())
		}
		for what, req := range map[string]*v1.StreamRunLogsRequest{
			"did you mean never?": {Task: "nevr"}, "did you mean never? ": {Task: "nevr", Follow: true}, "no attempt 9": {Task: "a", Attempt: proto.Int32(9)},
		} {
			req.Id = id
			stream := f.logs(t, req)
			stream.Receive()
			wantCode(t, what, stream.Err(), connect.CodeNotFound)
			if err := stream.Err(); err != nil && (!strings.Contains(err.Error(), strings.TrimSpace(what)) || missingRun(err)) {
				t.Errorf("%v, want %s", err, what)
			}
		}
	}
}

// TestLogsIncludeChildRuns checks that the logs of a run include those of its child runs, started by tasks or instances, at any
// depth. A stream that resumes another one sends only what that one did not.
func TestLogsIncludeChildRuns(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "parent", "deploy", "each", "own")
	child := func(parent string) string { return startedWith(t, visibility.StartedBy(parent, "child", time.Now())) }
	first, second := child(id), child(id)
	grandchild := child(first)
	for _, printed := range []struct{ run, task, text string }{{id, "own", "own\n"}, {first, "build", "built\n"}, {grandchild, "deep", "deep\n"}, {second, "build", "second\n"}} {
		set(t, printed.run, printed.task, 1, &v1.Task{State: "completed", Type: "shell", Result: &v1.TaskResult{}})
		writeLog(t, f.config.Store, printed.run, printed.task, 0, 1, printed.text)
	}
	set(t, id, "deploy", 1, &v1.Task{State: "completed", Type: "run", ChildRun: first})
	set(t, first, "sub", 1, &v1.Task{State: "completed", Type: "run", ChildRun: grandchild})
	set(t, id, "each", 0, &v1.Task{State: "completed", Type: "run", Count: proto.Int32(2), Counts: map[string]int32{"completed": 2}, Instances: []*v1.Instance{
		{Index: 0, State: "completed", ChildRun: second}, {Index: 1, State: "completed", ChildRun: "child-00000000"},
	}})

	all := map[string]string{
		"own": "own\n", "deploy/build": "built\n", "deploy/sub/deep": "deep\n", "each[0]/build": "second\n",
		"each[1]": "run child-00000000 has been deleted\n",
	}
	for task, want := range map[string]map[string]string{
		"":        all,
		"deploy":  {"deploy/build": "built\n", "deploy/sub/deep": "deep\n"},
		"each[0]": {"each[0]/build": "second\n"},
	} {
		if got := readLogs(t, f.logs(t, &v1.StreamRunLogsRequest{Id: id, Task: task, Children: true})); !maps.Equal(got, want) {
			t.Errorf("of %q: got %q, want %q", task, got, want)
		}
	}
	if got := readLogs(t, f.logs(t, &v1.StreamRunLogsRequest{Id: id})); !maps.Equal(got, map[string]string{"own": "own\n"}) {
		t.Errorf("without children: %q", got)
	}
	var resume []*v1.LogPosition
	stream := f.logs(t, &v1.StreamRunLogsRequest{Id: id, Children: true})
	for stream.Receive() {
		if at := stream.Msg().GetPosition(); at != nil && at.GetTask() != "each[0]/build" {
			resume = append(resume, at)
		}
	}
	rest := map[string]string{"each[0]/build": all["each[0]/build"], "each[1]": all["each[1]"]}
	if got := readLogs(t, f.logs(t, &v1.StreamRunLogsRequest{Id: id, Children: true, Resume: resume})); !maps.Equal(got, rest) {
		t.Errorf("resumed after %v: got %q, want %q", resume, got, rest)
	}
}

// TestListRunLogsPages reads a log of more than one page, and its tail.
func TestListRunLogsPages(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "paged-logs")
	set(t, id, "build", 1, assigned(0))
	var text strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&text, "line %d of a log that takes more than one page: %s\n", i, strings.Repeat("x", 30))
	}
	text.WriteString("caf\xff\nwithout an end")
	writeLog(t, f.config.Store, id, "build", 0, 1, text.String())

	var joined strings.Builder
	pages := 0
	for req := (&v1.ListRunLogsRequest{Id: id, Task: "build"}); pages == 0 || req.GetPageToken() != ""; pages++ {
		page := answer(t, f.client.ListRunLogs, req)
		for _, line := range page.GetItems() {
			joined.WriteString(line.GetText())
			if !line.GetPartial() {
				joined.WriteString("\n")
			}
			if line.GetTask() != "build" || line.GetStream() != "stdout" {
				t.Fatalf("a line is %v", line)
			}
		}
		req.PageToken = page.GetNextPageToken()
	}
	if want := strings.ToValidUTF8(text.String(), "\uFFFD") + "\n"; joined.String() != want || pages < 2 {
		t.Errorf("%d pages hold %d bytes, want %d", pages, joined.Len(), len(want))
	}
	if tail := answer(t, f.client.ListRunLogs, &v1.ListRunLogsRequest{Id: id, Tail: 2}).GetItems(); len(tail) != 2 || tail[0].GetText() != "caf\uFFFD" || tail[1].GetText() != "without an end" {
		t.Errorf("the tail is %v", tail)
	}
	for path, want := range map[string]string{
		"/tasks/biuld/logs": "did you mean build?", "/logs?tail=2&pageToken=abc": "page_token cannot be combined", "/logs?stream=both": "stream", "/logs?since=yesterday": "since",
	} {
		if got := f.rest(t, "GET", "/v1/runs/"+id+path, ""); got.status != 400 && got.status != 404 || !strings.Contains(got.message(), want) {
			t.Errorf("%s: %d %s", path, got.status, got.text)
		}
	}
}

// line is the data of a log event.
type line struct {
	Task, Stream, Time, Text string
	Bytes                    []byte
	Partial                  bool
}

// lineOf returns the data of an event, or the zero line if the event is not a log event.
func lineOf(t *testing.T, e sent) line {
	t.Helper()
	var l line
	if e.event == "log" {
		if err := json.Unmarshal([]byte(e.data), &l); err != nil {
			t.Fatal(err)
		}
	}
	return l
}

// texts returns the lines of log events with their tasks. Partial lines are in brackets.
func texts(t *testing.T, all []sent) []string {
	t.Helper()
	var found []string
	for _, e := range all {
		if l := lineOf(t, e); l.Partial {
			found = append(found, l.Task+" ["+l.Text+"]")
		} else if e.event == "log" {
			found = append(found, l.Task+" "+l.Text)
		}
	}
	return found
}

// TestLogStreamContinuesExactlyAfterALine checks that a stream of logs sends lines as tasks print them, and resumes
// exactly after the line with a given id, even in the middle of a stored chunk.
func TestLogStreamContinuesExactlyAfterALine(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "printing", "a", "b")
	set(t, id, "a", 1, assigned(0))
	set(t, id, "b", 2, assigned(0))
	a := logs.NewWriter(f.config.Store, logs.Attempt{Run: id, Task: "a", Claim: 1}, logs.Options{})
	b := logs.NewWriter(f.config.Store, logs.Attempt{Run: id, Task: "b", Claim: 2}, logs.Options{})
	path := "/runs/" + id + "/tasks/a/logs?follow=true"
	one, _ := f.openStream(t, path, "Accept", "*/*")
	both, _ := f.openStream(t, "/v1/runs/"+id+"/logs")
	print(t, a, "stdout", "first\nsecond\nthi")
	got := one.readEvents(t, 3)
	all := both.readEvents(t, 3)
	print(t, b, "stderr", "other\n\xff\xfe\n")
	all = append(all, both.readEvents(t, 2)...)
	if l := lineOf(t, all[4]); l.Text != "\uFFFD" && l.Text != "\uFFFD\uFFFD" || string(l.Bytes) != "\xff\xfe" || l.Stream != "stderr" || l.Time == "" {
		t.Errorf("bytes that are no text are %v", all[4])
	}
	print(t, a, "stdout", "rd\nfourth\n")
	closeLog(t, a)
	closeLog(t, b)
	set(t, id, "a", 1, &v1.Task{State: "completed"})
	got = append(got, one.rest()...)
	set(t, id, "b", 2, &v1.Task{State: "completed"})
	end(t, id, "completed")
	all = append(all, both.rest()...)
	want := []string{"a first", "a second", "a [thi]", "a rd", "a fourth"}
	if !slices.Equal(texts(t, got), want) || len(texts(t, all)) != 7 {
		t.Errorf("one task has printed %q, want %q; both have printed %q", texts(t, got), want, texts(t, all))
	}
	if last := got[len(got)-1]; last.event != "end" || last.data != fmt.Sprintf(`{"run":%q,"task":"a"}`, id) {
		t.Errorf("the last event is %v", last)
	}
	for path, sent := range map[string][]sent{path: got, "/v1/runs/" + id + "/logs": all} {
		for k, e := range sent[:len(sent)-1] {
			s, _ := f.openStream(t, path, "Accept", "text/event-stream", "Last-Event-ID", e.id)
			rest, expected := texts(t, s.rest()), texts(t, sent[k+1:])
			slices.Sort(rest)
			slices.Sort(expected)
			if !slices.Equal(rest, expected) {
				t.Errorf("%s: after event %d come %q, want %q", path, k, rest, expected)
			}
		}
	}
	_, res := f.openStream(t, path, "Last-Event-ID", got[len(got)-1].id)
	wantStatus(t, "after the end", res, http.StatusNoContent, "", "")
	for _, bad := range []string{"x", "1~", "~", "1~W10", "-1~W3sidCI6ImEifV0", "1~bnVsbA"} {
		_, res := f.openStream(t, path, "Last-Event-ID", bad)
		wantStatus(t, "after "+bad, res, http.StatusBadRequest, "invalid_argument", "is not the id of a log line")
	}
	_, res = f.openStream(t, "/v1/runs/"+id+"/tasks/c/logs")
	wantStatus(t, "an unknown task", res, http.StatusNotFound, "not_found", "c")
	_, res = f.openStream(t, "/v1/runs/"+id+"/logs?children=true&follow=true")
	wantStatus(t, "children that are followed", res, http.StatusBadRequest, "invalid_argument", "children cannot be combined with follow")
}

// TestLogStreamBeginsWithTheLastLines checks that tail=N starts with the last lines of each task and then continues.
func TestLogStreamBeginsWithTheLastLines(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "tailed", "a", "b")
	set(t, id, "a", 1, assigned(0))
	w := logs.NewWriter(f.config.Store, logs.Attempt{Run: id, Task: "a", Claim: 1}, logs.Options{})
	print(t, w, "stdout", "1\n2\n3\n4\n")
	path := "/v1/runs/" + id + "/logs"
	whole, _ := f.openStream(t, path) // waits until the lines are stored
	whole.readEvents(t, 4)
	writeLog(t, f.config.Store, id, "b", 0, 2, "5\n6\n7\n")
	set(t, id, "b", 2, &v1.Task{State: "completed"})
	whole.readEvents(t, 3)
	s, _ := f.openStream(t, path+"?tail=2")
	got := s.readEvents(t, 5)
	have := texts(t, got)
	slices.Sort(have)
	if !slices.Equal(have, []string{"a 3", "a 4", "b 6", "b 7"}) || got[4].event != "position" {
		t.Errorf("the stream begins with %q, %v", have, got[4])
	}
	again, _ := f.openStream(t, path+"?tail=2", "Last-Event-ID", got[4].id)
	none, _ := f.openStream(t, path+"?tail=0&follow=false")
	if rest := none.rest(); len(rest) != 2 || rest[1].event != "end" {
		t.Errorf("no lines are %v", rest)
	}
	print(t, w, "stdout", "8\n")
	closeLog(t, w)
	set(t, id, "a", 1, &v1.Task{State: "completed"})
	end(t, id, "completed")
	for what, s := range map[string]*eventStream{"that began": s, "that returned": again} {
		if rest := texts(t, s.rest()); !slices.Equal(rest, []string{"a 8"}) {
			t.Errorf("the stream %s continues with %q", what, rest)
		}
	}
}
