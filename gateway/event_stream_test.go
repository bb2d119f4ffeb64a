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

	"switchyard/gateway/edge"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// sent is one event of a stream.
type sent struct{ event, id, data string }

// eventStream reads a stream of server-sent events as a browser does.
type eventStream struct {
	body     io.ReadCloser
	lines    *bufio.Scanner
	lastID   string
	comments int
	retry    string
}

// openStream requests a stream. It repeats the request while the gateway reports that the run cannot be read now, because
// on a busy machine a run may take longer to answer than the gateway waits. The stream is nil if the status is not 200.
func (f *fixture) openStream(t *testing.T, path string, header ...string) (*eventStream, *http.Response) {
	t.Helper()
	return openStreamAt(t, f.server.URL()+path, header...)
}

func openStreamAt(t *testing.T, url string, header ...string) (*eventStream, *http.Response) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(client.CloseIdleConnections)
	patience := time.Now().Add(time.Minute)
	for {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
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
		case field == "":
			s.comments++
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

// numbered returns n events of a generation, with consecutive ids that start at from.
func numbered(generation int32, from, n int) []*v1.Event {
	var all []*v1.Event
	for k := range n {
		e := event(int64(from+k), []string{"build", "test"}[(from+k)%2], "queued")
		e.Id = names.EventID(generation, "", int64(from+k))
		all = append(all, e)
	}
	return all
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
	signal(t, id, eventsSignal, &v1.EventsResponse{Slices: 1, Events: all[4:6]})
	path := "/v1/runs/" + id + "/events"
	s, res := f.openStream(t, path)
	if got := res.Header.Get("Content-Type") + ", " + res.Header.Get("Cache-Control") + ", " + res.Header.Get("X-Accel-Buffering"); got != "text/event-stream, no-cache, no" {
		t.Errorf("the headers are %s", got)
	}
	got := s.readEvents(t, 6)
	if s.retry == "" {
		t.Error("there is no retry")
	}
	var first v1.Event
	if err := protojson.Unmarshal([]byte(got[0].data), &first); err != nil || got[0].event != "queued" || first.GetTask() != "build" || first.GetRun() != id || first.GetId() != "0-0" || !strings.Contains(got[0].data, `"node":""`) {
		t.Errorf("the first event is %v, %v", got[0], err)
	}
	signal(t, id, eventsSignal, &v1.EventsResponse{Slices: 1, Events: all[4:9]})
	got = append(got, s.readEvents(t, 3)...)
	// The sent events move to the store, and new ones follow.
	f.storeEvents(t, id, 0, 1, all[4:7]...)
	signal(t, id, eventsSignal, &v1.EventsResponse{Slices: 2, Events: all[7:11]})
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
	var want []string
	for _, e := range all {
		want = append(want, e.GetId())
	}
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
	if _, err := f.retryRun(t, id); err != nil {
		t.Fatal(err)
	}
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
// parameters.
func TestEventStreamAppliesItsParameters(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "sieved")
	all := numbered(0, 0, 6)
	all[3].Event, all[3].Node = "completed", "n-1"
	f.storeEvents(t, id, 0, 0, all...)
	signal(t, id, eventsSignal, &v1.EventsResponse{Slices: 1})
	end(t, id, "completed")
	path := "/v1/runs/" + id + "/events"
	for query, want := range map[string][]string{
		"?task=test":                    {"0-1", "0-3", "0-5", "0-end"},
		"?event=completed":              {"0-3", "0-end"},
		"?node=n-1&task=test":           {"0-3", "0-end"},
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
}

// TestEventsAreListedUnlessTheyAreFollowed checks that a request that does not ask for a stream gets the list.
func TestEventsAreListedUnlessTheyAreFollowed(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "streamed-or-listed")
	signal(t, id, eventsSignal, &v1.EventsResponse{Events: numbered(0, 0, 2)})
	for _, path := range []string{"/v1/runs/" + id + "/events", "/runs/" + id + "/events/?follow=false&task=build", "/v1/events?follow=false&node=streams-nowhere"} {
		res, err := http.Get(f.server.URL() + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "application/json" || !strings.Contains(string(text), `"items":`) {
			t.Errorf("%s: %s, %s", path, res.Status, text)
		}
	}
}

// TestEventStreamsAreBounded checks that a client with too many open streams is refused another one.
func TestEventStreamsAreBounded(t *testing.T) {
	t.Parallel()
	f := startConfigured(t, "mem://", Config{Limits: edge.Limits{Calls: 10, ClientCalls: 10, Streams: 4, ClientStreams: 2, BodyBytes: 1 << 20, BodyTime: limit}})
	id := f.submit(t, "crowded")
	path := "/v1/runs/" + id + "/events"
	f.openStream(t, path)
	second, _ := f.openStream(t, path)
	_, res := f.openStream(t, path)
	wantStatus(t, "the third", res, http.StatusTooManyRequests, "resource_exhausted", "2 open streams")
	_ = second.body.Close()
	eventually(t, "the second has gone", func() bool { return f.bounds.OpenStreams() == 1 })
	f.openStream(t, path)
}
