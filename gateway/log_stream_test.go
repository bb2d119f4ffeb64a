package gateway

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"switchyard/activities/logs"
	v1 "switchyard/proto/switchyard/v1"
)

// line is the data of a log event.
type line struct {
	Task, Stream, Time, Text string
	Attempt                  int32
	Bytes                    []byte
	Partial, Notice          bool
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
	for _, w := range []*logs.Writer{a, b} {
		if err := w.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	set(t, id, "a", 1, &v1.Task{State: "completed"})
	got = append(got, one.rest()...)
	set(t, id, "b", 2, &v1.Task{State: "completed"})
	end(t, id, "completed")
	all = append(all, both.rest()...)
	want := []string{"a first", "a second", "a [thi]", "a rd", "a fourth"}
	if !slices.Equal(texts(t, got), want) {
		t.Errorf("one task has printed %q, want %q", texts(t, got), want)
	}
	if last := got[len(got)-1]; last.event != "end" || last.data != fmt.Sprintf(`{"run":%q,"task":"a"}`, id) {
		t.Errorf("the last event is %v", last)
	}
	if len(texts(t, all)) != 7 {
		t.Errorf("both tasks have printed %q", texts(t, all))
	}
	for k, e := range got[:len(got)-1] {
		s, _ := f.openStream(t, path, "Last-Event-ID", e.id)
		if rest := texts(t, s.rest()); !slices.Equal(rest, want[k+1:]) {
			t.Errorf("after %q come %q", want[k], rest)
		}
	}
	for k, e := range all[:len(all)-1] {
		s, _ := f.openStream(t, "/v1/runs/"+id+"/logs", "Last-Event-ID", e.id)
		rest, expected := texts(t, s.rest()), texts(t, all[k+1:])
		slices.Sort(rest)
		slices.Sort(expected)
		if !slices.Equal(rest, expected) {
			t.Errorf("after event %d come %q, want %q", k, rest, expected)
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
	whole, _ := f.openStream(t, "/v1/runs/"+id+"/logs") // waits until the lines are stored
	whole.readEvents(t, 4)
	writeLog(t, f.config.Store, id, "b", 0, 2, "5\n6\n7\n")
	set(t, id, "b", 2, &v1.Task{State: "completed"})
	whole.readEvents(t, 3)
	s, _ := f.openStream(t, "/v1/runs/"+id+"/logs?tail=2")
	got := s.readEvents(t, 5)
	have := texts(t, got)
	slices.Sort(have)
	if !slices.Equal(have, []string{"a 3", "a 4", "b 6", "b 7"}) || got[4].event != "position" {
		t.Errorf("the stream begins with %q, %v", have, got[4])
	}
	again, _ := f.openStream(t, "/v1/runs/"+id+"/logs?tail=2", "Last-Event-ID", got[4].id)
	none, _ := f.openStream(t, "/v1/runs/"+id+"/logs?tail=0&follow=false")
	if rest := none.rest(); len(rest) != 2 || rest[1].event != "end" {
		t.Errorf("no lines are %v", rest)
	}
	print(t, w, "stdout", "8\n")
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	set(t, id, "a", 1, &v1.Task{State: "completed"})
	end(t, id, "completed")
	for what, s := range map[string]*eventStream{"that began": s, "that returned": again} {
		if rest := texts(t, s.rest()); !slices.Equal(rest, []string{"a 8"}) {
			t.Errorf("the stream %s continues with %q", what, rest)
		}
	}
}

// TestLogStreamOfManyTasksHasShortIDs checks that a stream of the logs of very many tasks has ids only as long as they
// are short.
func TestLogStreamOfManyTasksHasShortIDs(t *testing.T) {
	t.Parallel()
	f := start(t)
	var tasks []string
	for k := range 400 {
		tasks = append(tasks, fmt.Sprintf("task-with-a-long-name-%d", k))
	}
	id := f.submit(t, "wide", tasks...)
	states := &v1.StatusResponse{Run: &v1.Run{Tasks: map[string]*v1.Task{}}, Claims: map[string]int32{}}
	for k, task := range tasks {
		writeLog(t, f.config.Store, id, task, 0, int32(k+1), "text\n")
		states.Run.Tasks[task], states.Claims[task] = &v1.Task{State: "completed"}, int32(k+1)
	}
	signal(t, id, setSignal, states)
	end(t, id, "completed")
	s, _ := f.openStream(t, "/v1/runs/"+id+"/logs")
	got := s.rest()
	lastID, after := "", 0
	for k, e := range got[:len(got)-1] {
		if len(e.id) > 7<<10 {
			t.Fatalf("an id of %d bytes", len(e.id))
		}
		if e.id != "" {
			lastID, after = e.id, k
		}
	}
	if len(texts(t, got)) != 400 || after < 50 || after > 390 {
		t.Fatalf("%d lines, the last id is that of line %d", len(texts(t, got)), after)
	}
	again, _ := f.openStream(t, "/v1/runs/"+id+"/logs", "Last-Event-ID", lastID)
	rest := texts(t, again.rest())
	for _, e := range got[after+1 : len(got)-1] {
		if text := texts(t, []sent{e})[0]; !slices.Contains(rest, text) {
			t.Errorf("%s is lost", text)
		}
	}
	if strings.Contains(strings.Join(rest, " "), tasks[0]+" ") && after > 0 && texts(t, got[:1])[0] == tasks[0]+" text" {
		t.Error("the first line came twice")
	}
}
