package gateway

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// sent is one event of a stream.
type sent struct{ event, id, data string }

// eventStream reads a stream of server-sent events as a browser does.
type eventStream struct {
	body   io.ReadCloser
	lines  *bufio.Scanner
	lastID string
	retry  string
}

// openStream requests a stream. It repeats the request while the gateway reports that the run cannot be read now, because
// on a busy machine a run may take longer to answer than the gateway waits. The stream is nil if the status is not 200.
func (f *fixture) openStream(t *testing.T, path string, header ...string) (*eventStream, *http.Response) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	patience := time.Now().Add(time.Minute)
	for {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.server.URL()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Accept", "text/event-stream")
		for k := 0; k < len(header); k += 2 {
			req.Header.Set(header[k], header[k+1])
		}
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode == http.StatusServiceUnavailable && time.Now().Before(patience) {
			_ = res.Body.Close()
			continue
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		if res.StatusCode != http.StatusOK {
			return nil, res
		}
		lines := bufio.NewScanner(res.Body)
		lines.Buffer(nil, 1<<20)
		return &eventStream{body: res.Body, lines: lines}, res
	}
}

// next returns the next event, or false at the end of the stream.
func (s *eventStream) next() (e sent, ok bool) {
	for s.lines.Scan() {
		field, value, _ := strings.Cut(s.lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case s.lines.Text() == "":
			if e.data != "" {
				return e, true
			}
			e = sent{}
		case field == "event":
			e.event = value
		case field == "id":
			e.id, s.lastID = value, value
		case field == "data":
			e.data += value
		case field == "retry":
			s.retry = value
		}
	}
	return sent{}, false
}

// readEvents reads the next n events.
func (s *eventStream) readEvents(t *testing.T, n int) []sent {
	t.Helper()
	var all []sent
	for range n {
		e, ok := s.next()
		if !ok {
			t.Fatalf("the stream ended after %v", all)
		}
		all = append(all, e)
	}
	return all
}

// rest reads all events until the end of the stream.
func (s *eventStream) rest() []sent {
	var all []sent
	for e, ok := s.next(); ok; e, ok = s.next() {
		all = append(all, e)
	}
	return all
}

// ids returns the ids of events.
func ids(all []sent) []string {
	var found []string
	for _, e := range all {
		found = append(found, e.id)
	}
	return found
}

// sentIDs returns the ids in the data of the events before the end of a stream.
func sentIDs(t *testing.T, all []sent) (found []string) {
	t.Helper()
	for _, e := range all {
		if e.event != "end" {
			found = append(found, e.message(t).GetId())
		}
	}
	return found
}

// message returns the event in the data.
func (e sent) message(t *testing.T) *v1.Event {
	t.Helper()
	m := &v1.Event{}
	if err := protojson.Unmarshal([]byte(e.data), m); err != nil {
		t.Fatal(err)
	}
	return m
}

// wantStatus checks the response to a request that gets no stream.
func wantStatus(t *testing.T, what string, res *http.Response, status int, code, message string) {
	t.Helper()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != status {
		t.Errorf("%s: %s, want %d: %s", what, res.Status, status, text)
		return
	}
	if status == http.StatusNoContent {
		return
	}
	var body struct {
		Code, Message string
		Details       *[]json.RawMessage
	}
	if err := json.Unmarshal(text, &body); err != nil || body.Code != code || !strings.Contains(body.Message, message) || body.Details == nil {
		t.Errorf("%s: the body is %s, %v; want %s, %q", what, text, err, code, message)
	}
}

// TestEventStreamResumesExactlyAfterAnID checks that a stream sends each event once with its id, from the store or from
// the workflow, and resumes exactly after any id. The end event tells how the run ended, and a client that returns with
// the id of the end event gets 204.
func TestEventStreamResumesExactlyAfterAnID(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "streamed")
	all := numbered(0, 0, 12)
	f.storeEvents(t, id, 0, 0, all[:4]...)
	signal(t, id, eventsSignal, &historyv1.EventsResponse{Slices: 1, Events: all[4:6]})
	path := "/v1/runs/" + id + "/events"
	s, res := f.openStream(t, path)
	if got := res.Header.Get("Content-Type") + ", " + res.Header.Get("Cache-Control") + ", " + res.Header.Get("X-Accel-Buffering"); got != "text/event-stream, no-cache, no" {
		t.Errorf("the headers are %s", got)
	}
	got := s.readEvents(t, 6)
	if s.retry == "" {
		t.Error("there is no retry")
	}
	if first := got[0].message(t); got[0].event != "queued" || first.GetTask() != "build" || first.GetRun() != id || first.GetId() != "0-0" || !strings.Contains(got[0].data, `"node":""`) {
		t.Errorf("the first event is %v", got[0])
	}
	signal(t, id, eventsSignal, &historyv1.EventsResponse{Slices: 1, Events: all[4:9]})
	got = append(got, s.readEvents(t, 3)...)
	// The sent events move to the store, and new ones follow.
	f.storeEvents(t, id, 0, 1, all[4:7]...)
	signal(t, id, eventsSignal, &historyv1.EventsResponse{Slices: 2, Events: all[7:11]})
	got = append(got, s.readEvents(t, 2)...)
	early, _ := f.openStream(t, path, "Last-Event-ID", "0-1")
	early.readEvents(t, 9)
	late, _ := f.openStream(t, path+"?lastEventId=0-10&follow=true", "Accept", "*/*")
	if started := f.sse.CountFeeds(); started != 1 {
		t.Errorf("%d feeds have been started for one run", started)
	}
	f.storeEvents(t, id, 0, 2, all[7:]...)
	end(t, id, "failed")
	got = append(got, s.readEvents(t, 1)...)
	want := eventIDs(all)
	if !slices.Equal(ids(got), want) {
		t.Errorf("the stream has sent %v, want %v", ids(got), want)
	}
	for what, s := range map[string]*eventStream{"whole": s, "early": early, "late": late} {
		rest := s.rest()
		last := rest[len(rest)-1]
		if last.event != "end" || last.id != "0-end" || last.data != fmt.Sprintf(`{"run":%q,"generation":0,"state":"failed","reason":"task_failed","error":""}`, id) {
			t.Errorf("%s: the last event is %v", what, last)
		}
		if before := rest[:len(rest)-1]; what != "whole" && !slices.Equal(ids(before), want[11:]) {
			t.Errorf("%s: the rest is %v", what, ids(before))
		}
	}
	for after := range all {
		s, _ := f.openStream(t, path, "Last-Event-ID", want[after])
		if got := ids(s.rest()); !slices.Equal(got, append(slices.Clone(want[after+1:]), "0-end")) {
			t.Errorf("after %s come %v", want[after], got)
		}
	}
	_, res = f.openStream(t, path, "Last-Event-ID", "0-end")
	wantStatus(t, "after the end", res, http.StatusNoContent, "", "")

	// A retry starts a new generation. Its events follow the end of the previous one.
	f.storeEvents(t, id, 1, 0, numbered(1, 0, 2)...)
	f.retryRun(t, id)
	again, _ := f.openStream(t, path, "Last-Event-ID", "0-end")
	if got := ids(again.readEvents(t, 2)); !slices.Equal(got, []string{"1-0", "1-1"}) {
		t.Errorf("the next generation begins with %v", got)
	}
	whole, _ := f.openStream(t, path)
	if got := ids(whole.readEvents(t, 14)); !slices.Equal(got, append(slices.Clone(want), "1-0", "1-1")) {
		t.Errorf("both generations are %v", got)
	}
	for _, bad := range []string{"0-12", "1-2", "2-0", "3-end", "nonsense", "0-each[0]-3", "0-1~x", "0-1~eyJwIjp7ImVhY2hbMF0iOjN9fQ"} {
		_, res := f.openStream(t, path, "Last-Event-ID", bad)
		wantStatus(t, "after "+bad, res, http.StatusBadRequest, "invalid_argument", "")
	}
}

// TestEventStreamAppliesItsParameters checks that a stream has the events that its parameters select, and rejects invalid
// parameters. Without a follow, the same path lists events.
func TestEventStreamAppliesItsParameters(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "sieved")
	all := numbered(0, 0, 6)
	all[3].Event, all[3].Node = "completed", "n-1"
	f.storeEvents(t, id, 0, 0, all...)
	signal(t, id, eventsSignal, &historyv1.EventsResponse{Slices: 1})
	end(t, id, "completed")
	path := "/v1/runs/" + id + "/events"
	for query, want := range map[string][]string{
		"?task=test&event=queued":       {"0-1", "0-5", "0-end"},
		"?node=n-1":                     {"0-3", "0-end"},
		"?since=2026-01-01T00:00:04Z":   {"0-4", "0-5", "0-end"},
		"?task=build&lastEventId=0-3":   {"0-4", "0-end"},
		"?event=failed&lastEventId=0-5": {"0-end"},
		"?until=2026-01-01T00:00:01.5Z": {"0-0", "0-1", "0-end"},
	} {
		s, _ := f.openStream(t, path+query)
		if got := ids(s.rest()); !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", query, got, want)
		}
	}
	for path, want := range map[string]struct {
		status        int
		code, message string
	}{
		path + "?event=nonsense":             {400, "invalid_argument", "event"},
		path + "?evnt=failed":                {400, "invalid_argument", `unknown parameter "evnt"`},
		path + "?task=build&task=test":       {400, "invalid_argument", "given 2 times"},
		path + "?since=yesterday":            {400, "invalid_argument", "write times as"},
		path + "?follow=perhaps":             {400, "invalid_argument", "true or false"},
		path + "?task=tset":                  {404, "not_found", "test"},
		"/v1/runs/nothing/events":            {404, "not_found", "no run"},
		"/v1/runs/a%2Fb/events":              {400, "invalid_argument", "escaped slash"},
		"/v1/runs/" + id + "/event":          {404, "not_found", "unknown path"},
		"/v1/runs/" + id + "/logs?tail=many": {400, "invalid_argument", "tail"},
	} {
		_, res := f.openStream(t, path)
		wantStatus(t, path, res, want.status, want.code, want.message)
	}
	for _, path := range []string{path, "/runs/" + id + "/events/?follow=false&task=build", "/v1/events?follow=false&node=streams-nowhere"} {
		if got := f.rest(t, "GET", path, ""); got.status != http.StatusOK || got.value["items"] == nil {
			t.Errorf("%s: %d %s", path, got.status, got.text)
		}
	}
}

// TestEventStreamContinuesOverARestart checks that a stream that ends with its gateway has no end event. It resumes at
// the next gateway and reaches the end of the run without losing or repeating events.
func TestEventStreamContinuesOverARestart(t *testing.T) {
	t.Parallel()
	location := "file://" + t.TempDir()
	f := startIn(t, location)
	id := f.submit(t, "restarted")
	all := numbered(0, 0, 40)
	path := "/v1/runs/" + id + "/events"
	var got []sent
	last := ""
	for from := 0; from < len(all); from += 20 {
		signal(t, id, eventsSignal, &historyv1.EventsResponse{Events: all[:from+10]})
		s, _ := f.openStream(t, path, "Last-Event-ID", last)
		got = append(got, s.readEvents(t, from+10-len(got))...)
		// The run continues while the gateway is down.
		if err := f.server.Close(); err != nil {
			t.Fatal(err)
		}
		got = append(got, s.rest()...)
		last = s.lastID
		signal(t, id, eventsSignal, &historyv1.EventsResponse{Events: all[:from+20]})
		f = startIn(t, location)
	}
	f.storeEvents(t, id, 0, 0, all...)
	end(t, id, "completed")
	s, _ := f.openStream(t, path, "Last-Event-ID", last)
	got = append(got, s.rest()...)
	if !slices.Equal(ids(got), append(eventIDs(all), "0-end")) {
		t.Errorf("over the restarts came %v", ids(got))
	}
}

// TestRunningAttemptIsShownWithoutAnID checks that a start known only from the heartbeat of an attempt is shown, and gets
// its id with the later event.
func TestRunningAttemptIsShownWithoutAnID(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "beating")
	set(t, id, "build", 2, &v1.Task{State: "assigned", Node: "n"})
	s, _ := f.openStream(t, "/v1/runs/"+id+"/events")
	token := startAttempt(t, id, id, "build", 2)
	if err := temporalClient.RecordActivityHeartbeat(t.Context(), token, &historyv1.ExecuteProgress{Spawned: true, StartedAt: timestamppb.Now(), Claim: 2}); err != nil {
		t.Fatal(err)
	}
	if e := s.readEvents(t, 1)[0]; e.event != "running" || e.id != "" || e.message(t).GetEvent() != "started" {
		t.Errorf("the start is %v", e)
	}
	late, _ := f.openStream(t, "/v1/runs/"+id+"/events?event=started")
	if e := late.readEvents(t, 1)[0]; e.event != "running" {
		t.Errorf("who comes later sees %v", e)
	}
	started := numbered(0, 0, 1)
	started[0].Task, started[0].Event, started[0].Claim = "build", "started", 2
	set(t, id, "build", 2, &v1.Task{State: "completed", Node: "n"})
	f.storeEvents(t, id, 0, 0, started...)
	end(t, id, "completed")
	for _, s := range []*eventStream{s, late} {
		if got := ids(s.rest()); !slices.Equal(got, []string{"0-0", "0-end"}) {
			t.Errorf("then come %v", got)
		}
	}
}
