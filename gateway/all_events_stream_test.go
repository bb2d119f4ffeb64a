package gateway

import (
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// happening returns a numbered event of a run at the given time.
func happening(at time.Time, number int, task, what string) *v1.Event {
	return &v1.Event{Id: names.EventID(0, "", int64(number)), At: timestamppb.New(at), Task: task, Event: what}
}

// runEventsOf returns the events among all that belong to some runs, as "run id".
func runEventsOf(t *testing.T, all []sent, runs ...string) []string {
	t.Helper()
	var found []string
	for _, e := range all {
		var message v1.Event
		if err := protojson.Unmarshal([]byte(e.data), &message); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(runs, message.GetRun()) {
			found = append(found, message.GetRun()+" "+message.GetId())
		}
	}
	return found
}

// readUntil reads until n events of the given runs have arrived, and returns everything that it read.
func (s *eventStream) readUntil(t *testing.T, n int, runs ...string) []sent {
	t.Helper()
	var all []sent
	for len(runEventsOf(t, all, runs...)) < n {
		all = append(all, s.readEvents(t, 1)...)
	}
	return all
}

// TestStreamOfAllRunsResumesWithoutLoss checks that a stream of all runs has the events of open runs and of runs that start
// later. It resumes exactly at the gateway that served it, and without a loss at another one.
func TestStreamOfAllRunsResumesWithoutLoss(t *testing.T) {
	t.Parallel()
	location := "file://" + t.TempDir()
	f := startIn(t, location)
	old := f.submit(t, "old")
	past, now := time.Now().Add(-time.Hour), time.Now()
	events := []*v1.Event{happening(past, 0, "", "submitted"), happening(past, 1, "build", "assigned")}
	signal(t, old, eventsSignal, &v1.EventsResponse{Events: events})
	s, _ := f.openStream(t, "/v1/events")
	other, _ := f.openStream(t, "/events?follow=true&task=test", "Accept", "*/*")
	events = append(events, happening(past, 2, "build", "started"), happening(now.Add(time.Minute), 3, "build", "completed"))
	signal(t, old, eventsSignal, &v1.EventsResponse{Events: events})
	got := s.readUntil(t, 2, old)
	if have := runEventsOf(t, got, old); !slices.Equal(have, []string{old + " 0-2", old + " 0-3"}) {
		t.Errorf("the run that was open has %v", have)
	}
	fresh := f.submit(t, "fresh")
	some := []*v1.Event{happening(time.Now(), 0, "", "submitted"), happening(time.Now(), 1, "test", "queued")}
	signal(t, fresh, eventsSignal, &v1.EventsResponse{Events: some})
	got = append(got, s.readUntil(t, 2, fresh)...)
	if e := other.readEvents(t, 1)[0]; runEventsOf(t, []sent{e}, fresh) == nil || e.event != "queued" {
		t.Errorf("the stream of one task has %v", e)
	}
	some = append(some, happening(time.Now(), 2, "test", "completed"))
	f.storeEvents(t, fresh, 0, 0, some...)
	end(t, fresh, "completed")
	got = append(got, s.readUntil(t, 1, fresh)...)
	want := runEventsOf(t, got, old, fresh)
	if len(want) != 5 {
		t.Errorf("the stream has %v", want)
	}
	// Resume at the same gateway.
	mine := slices.IndexFunc(got, func(e sent) bool { return len(runEventsOf(t, []sent{e}, old, fresh)) > 0 })
	again, _ := f.openStream(t, "/v1/events", "Last-Event-ID", got[mine].id)
	if have := runEventsOf(t, again.readUntil(t, 4, old, fresh), old, fresh); !slices.Equal(have, want[1:]) {
		t.Errorf("after %v come %v", want[0], have)
	}
	if n := f.sse.CountFeeds(); n != 0 {
		t.Errorf("%d feeds of single runs have been started", n)
	}
	// Resume at another gateway, which also repeats the events of the minute before.
	elsewhere := startIn(t, location)
	next, _ := elsewhere.openStream(t, "/v1/events", "Last-Event-ID", got[mine].id)
	seen := map[string]bool{}
	for !allIn(seen, want[1:]) {
		for _, text := range runEventsOf(t, next.readEvents(t, 1), old, fresh) {
			seen[text] = true
		}
	}
	from, _ := elsewhere.openStream(t, "/v1/events?since="+now.UTC().Format(time.RFC3339Nano))
	clear(seen)
	for !allIn(seen, want[1:]) {
		for _, text := range runEventsOf(t, from.readEvents(t, 1), old, fresh) {
			seen[text] = true
		}
	}
	if seen[old+" 0-0"] || seen[old+" 0-2"] {
		t.Error("since has an event from before")
	}
	// A client that was away for long gets an event about the gap.
	gone, _ := elsewhere.openStream(t, "/v1/events", "Last-Event-ID", fmt.Sprintf("0123456789ab-7-%d", past.Add(-time.Hour).UnixMilli()))
	if e := gone.readEvents(t, 1)[0]; e.event != "gap" || e.id == "" {
		t.Errorf("after two hours comes %v", e)
	}
	for _, bad := range []string{"0-1", "a-b-c", "x-1-99999999999999", "0123456789ab-007-1"} {
		_, res := f.openStream(t, "/v1/events", "Last-Event-ID", bad)
		wantStatus(t, "after "+bad, res, http.StatusBadRequest, "invalid_argument", "is not an event id of a stream of all runs")
	}
	_, res := f.openStream(t, "/v1/events?since=2020-01-01T00:00:00Z")
	wantStatus(t, "an old since", res, http.StatusBadRequest, "invalid_argument", "at most 1h0m0s ago")
}

func allIn(seen map[string]bool, wanted []string) bool {
	return !slices.ContainsFunc(wanted, func(text string) bool { return !seen[text] })
}
