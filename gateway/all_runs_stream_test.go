package gateway

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// happening returns a numbered event of a run at the given time.
func happening(at time.Time, number int, task, what string) *v1.Event {
	return &v1.Event{Id: names.EventID(0, "", int64(number)), At: timestamppb.New(at), Task: task, Event: what}
}

// eventsOf returns the events of a stream that belong to some runs, as "run id".
func eventsOf(t *testing.T, all []sent, runs ...string) (found []string) {
	t.Helper()
	for _, e := range all {
		if m := e.message(t); slices.Contains(runs, m.GetRun()) {
			found = append(found, m.GetRun()+" "+m.GetId())
		}
	}
	return found
}

// readUntil reads until n events of the given runs have arrived, and returns everything that it read.
func (s *eventStream) readUntil(t *testing.T, n int, runs ...string) (all []sent) {
	t.Helper()
	for len(eventsOf(t, all, runs...)) < n {
		all = append(all, s.readEvents(t, 1)...)
	}
	return all
}

// TestStreamOfAllRunsResumesWithoutLoss checks that a stream of all runs has the events of open runs and of runs that start
// later. It resumes exactly at the gateway that served it, and without a loss at another one.
func TestStreamOfAllRunsResumesWithoutLoss(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, elsewhere := startLocked(t, dir), startLocked(t, dir)
	ann, _ := f.token(t, "streaming-ann", v1.RoleUser) // whose streams read no runs of other tests
	f.client = f.dialAs(t, ann)
	open := func(f *fixture, path string, header ...string) (*eventStream, *http.Response) {
		return f.openStream(t, path, append(header, "Authorization", "Bearer "+ann)...)
	}
	old := f.submit(t, "old")
	past, now := time.Now().Add(-time.Hour), time.Now()
	events := []*v1.Event{happening(past, 0, "", "submitted"), happening(past, 1, "build", "assigned")}
	signal(t, old, eventsSignal, &historyv1.EventsResponse{Events: events})
	s, _ := open(f, "/v1/events")
	other, _ := open(f, "/events?follow=true&task=test", "Accept", "*/*")
	events = append(events, happening(past, 2, "build", "started"), happening(now.Add(time.Minute), 3, "build", "completed"))
	signal(t, old, eventsSignal, &historyv1.EventsResponse{Events: events})
	got := s.readUntil(t, 2, old)
	if have := eventsOf(t, got, old); !slices.Equal(have, []string{old + " 0-2", old + " 0-3"}) {
		t.Errorf("the run that was open has %v", have)
	}
	fresh := f.submit(t, "fresh")
	some := []*v1.Event{happening(time.Now(), 0, "", "submitted"), happening(time.Now(), 1, "test", "queued")}
	signal(t, fresh, eventsSignal, &historyv1.EventsResponse{Events: some})
	got = append(got, s.readUntil(t, 2, fresh)...)
	if e := other.readEvents(t, 1)[0]; eventsOf(t, []sent{e}, fresh) == nil || e.event != "queued" {
		t.Errorf("the stream of one task has %v", e)
	}
	some = append(some, happening(time.Now(), 2, "test", "completed"))
	f.storeEvents(t, fresh, 0, 0, some...)
	end(t, fresh, "completed")
	got = append(got, s.readUntil(t, 1, fresh)...)
	want := eventsOf(t, got, old, fresh)
	if len(want) != 5 {
		t.Errorf("the stream has %v", want)
	}
	// Resume at the same gateway.
	first := got[slices.IndexFunc(got, func(e sent) bool { return eventsOf(t, []sent{e}, old, fresh) != nil })].id
	again, _ := open(f, "/v1/events", "Last-Event-ID", first)
	if have := eventsOf(t, again.readUntil(t, 4, old, fresh), old, fresh); !slices.Equal(have, want[1:]) {
		t.Errorf("after %v come %v", want[0], have)
	}
	if n := f.sse.CountFeeds(); n != 0 {
		t.Errorf("%d feeds of single runs have been started", n)
	}
	// Resume at another gateway, which also repeats the events of the minute before.
	readAll := func(s *eventStream) map[string]bool {
		t.Helper()
		seen := map[string]bool{}
		for slices.ContainsFunc(want[1:], func(text string) bool { return !seen[text] }) {
			for _, text := range eventsOf(t, s.readEvents(t, 1), old, fresh) {
				seen[text] = true
			}
		}
		return seen
	}
	next, _ := open(elsewhere, "/v1/events", "Last-Event-ID", first)
	readAll(next)
	from, _ := open(elsewhere, "/v1/events?since="+now.UTC().Format(time.RFC3339Nano))
	if seen := readAll(from); seen[old+" 0-0"] || seen[old+" 0-2"] {
		t.Error("since has an event from before")
	}
	// A client that was away for long gets an event about the gap.
	gone, _ := open(elsewhere, "/v1/events", "Last-Event-ID", fmt.Sprintf("0123456789ab-7-%d", past.Add(-time.Hour).UnixMilli()))
	if e := gone.readEvents(t, 1)[0]; e.event != "gap" || e.id == "" {
		t.Errorf("after two hours comes %v", e)
	}
	for _, bad := range []string{"0-1", "a-b-c", "x-1-99999999999999", "0123456789ab-007-1"} {
		_, res := open(f, "/v1/events", "Last-Event-ID", bad)
		wantStatus(t, "after "+bad, res, http.StatusBadRequest, "invalid_argument", "is not an event id of a stream of all runs")
	}
	_, res := open(f, "/v1/events?since=2020-01-01T00:00:00Z")
	wantStatus(t, "an old since", res, http.StatusBadRequest, "invalid_argument", "at most 1h0m0s ago")
}

// TestSlowReaderDelaysNoOther checks that a follower receives all events while another one has stalled.
func TestSlowReaderDelaysNoOther(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "flooded")
	const parts, each = 25, 100
	for part := range int32(parts) {
		events := numbered(0, int(part)*each, each)
		for _, e := range events {
			e.Detail = strings.Repeat("x", 4<<10) // exceeds the socket buffers
		}
		f.storeEvents(t, id, 0, part, events...)
	}
	signal(t, id, eventsSignal, &historyv1.EventsResponse{Slices: parts})
	conn, err := net.Dial("tcp", f.server.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /v1/runs/"+id+"/events HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the slow reader has come", func() bool { return f.bounds.OpenStreams() == 1 })
	s, _ := f.openStream(t, "/v1/runs/"+id+"/events")
	if last := s.readEvents(t, parts*each)[parts*each-1]; last.id != names.EventID(0, "", parts*each-1) {
		t.Errorf("the last event is %s", last.id)
	}
	end(t, id, "completed")
	if rest := s.rest(); len(rest) != 1 || rest[0].event != "end" {
		t.Errorf("the other continues with %v", rest)
	}
}

// TestAbandonedStreamsLeakNothing opens streams of all kinds, several at a time, and disconnects from each after its first bytes. All
// of them end, and leak nothing.
func TestAbandonedStreamsLeakNothing(t *testing.T) {
	t.Parallel()
	const streams = 100
	f := start(t)
	id := f.submit(t, "visited")
	signal(t, id, eventsSignal, &historyv1.EventsResponse{Events: numbered(0, 0, 5)})
	paths := []string{"/v1/runs/" + id + "/events", "/v1/runs/" + id + "/tasks/build/logs", "/v1/events", "/v1/runs/" + id + "/logs"}
	before := runtime.NumGoroutine()
	visit := func(path string) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.server.URL()+path+"?follow=true", nil)
		if err != nil {
			return err
		}
		res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			return err
		}
		defer res.Body.Close()
		_, err = res.Body.Read(make([]byte, 1))
		return err
	}
	var wg sync.WaitGroup
	for k := range 20 {
		wg.Go(func() {
			for n := range streams / 20 {
				if err := visit(paths[(k+n)%len(paths)]); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	eventually(t, "all streams have ended", func() bool {
		return f.bounds.OpenStreams() == 0 && f.bounds.OpenCalls() == 0 && f.sse.CountOpen() == 0 && f.pollers.CountOpen() == 0
	})
	// The feed of all runs lingers for a while, and concurrent tests have goroutines of their own.
	eventually(t, "less than one goroutine for two streams was added", func() bool { return runtime.NumGoroutine() < before+streams/2 })
}
