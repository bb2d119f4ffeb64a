package gateway

import (
	"context"
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

	v1 "switchyard/proto/switchyard/v1"
)

// TestEventStreamContinuesOverARestart checks that a stream that ends with its gateway has no end event. It resumes at
// the next gateway and reaches the end of the run without losing or repeating events.
func TestEventStreamContinuesOverARestart(t *testing.T) {
	t.Parallel()
	location := "file://" + t.TempDir()
	f := startIn(t, location)
	id := f.submit(t, "restarted")
	all := numbered(0, 0, 60)
	path := "/v1/runs/" + id + "/events"
	var got []sent
	last := ""
	for from := 0; from < 60; from += 20 {
		signal(t, id, eventsSignal, &v1.EventsResponse{Events: all[:from+10]})
		s, _ := f.openStream(t, path, "Last-Event-ID", last)
		got = append(got, s.readEvents(t, from+10-len(got))...)
		// The run continues while the gateway is down.
		if err := f.server.Close(); err != nil {
			t.Fatal(err)
		}
		got = append(got, s.rest()...)
		last = s.lastID
		signal(t, id, eventsSignal, &v1.EventsResponse{Events: all[:from+20]})
		f = startIn(t, location)
	}
	f.storeEvents(t, id, 0, 0, all...)
	end(t, id, "completed")
	s, _ := f.openStream(t, path, "Last-Event-ID", last)
	got = append(got, s.rest()...)
	var want []string
	for _, e := range all {
		want = append(want, e.GetId())
	}
	if !slices.Equal(ids(got), append(want, "0-end")) {
		t.Errorf("over three restarts came %v", ids(got))
	}
}

func TestSilentStreamSendsComments(t *testing.T) {
	t.Parallel()
	f := startConfigured(t, "mem://", Config{StreamKeepAlive: 20 * time.Millisecond})
	id := f.submit(t, "silent")
	for _, path := range []string{"/v1/runs/" + id + "/events", "/v1/runs/" + id + "/logs", "/v1/events"} {
		s, _ := f.openStream(t, path)
		for seen := 0; seen < 3; {
			if !s.lines.Scan() {
				t.Fatalf("%s has ended after %d comments", path, seen)
			}
			if strings.HasPrefix(s.lines.Text(), ":") {
				seen++
			}
		}
		_ = s.body.Close()
	}
}

// TestSlowReaderDelaysNoOther checks that a follower receives all events while another one has stalled.
func TestSlowReaderDelaysNoOther(t *testing.T) {
	t.Parallel()
	f := start(t)
	id := f.submit(t, "flooded")
	var all []*v1.Event
	for part := range int32(25) {
		events := numbered(0, len(all), 100)
		for _, e := range events {
			e.Detail = strings.Repeat("x", 4<<10) // exceeds the socket buffers
		}
		f.storeEvents(t, id, 0, part, events...)
		all = append(all, events...)
	}
	signal(t, id, eventsSignal, &v1.EventsResponse{Slices: 25})
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
	if got := ids(s.readEvents(t, len(all))); got[len(got)-1] != all[len(all)-1].GetId() {
		t.Errorf("the last of %d events is %s", len(got), got[len(got)-1])
	}
	end(t, id, "completed")
	if rest := s.rest(); len(rest) != 1 || rest[0].event != "end" {
		t.Errorf("the other continues with %v", rest)
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
	if err := temporalClient.RecordActivityHeartbeat(t.Context(), token, &v1.ExecuteProgress{Spawned: true, StartedAt: timestamppb.Now(), Claim: 2}); err != nil {
		t.Fatal(err)
	}
	if e := s.readEvents(t, 1)[0]; e.event != "running" || e.id != "" || !strings.Contains(e.data, `"event":"started"`) {
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

// TestAbandonedStreamsLeakNothing checks that streams end when their clients disconnect, and leak nothing.
func TestAbandonedStreamsLeakNothing(t *testing.T) {
	t.Parallel()
	leaveStreams(t, 100)
}

// leaveStreams opens streams of all kinds, several at a time, and disconnects from each after its first bytes.
func leaveStreams(t *testing.T, n int) {
	t.Helper()
	f := start(t)
	id := f.submit(t, "visited")
	signal(t, id, eventsSignal, &v1.EventsResponse{Events: numbered(0, 0, 5)})
	paths := []string{"/v1/runs/" + id + "/events", "/v1/runs/" + id + "/tasks/build/logs", "/v1/events", "/v1/runs/" + id + "/logs"}
	before := runtime.NumGoroutine()
	var wg sync.WaitGroup
	visit := make(chan string)
	for range 20 {
		wg.Go(func() {
			for path := range visit {
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.server.URL()+path+"?follow=true", nil)
				if err != nil {
					t.Error(err)
				}
				client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
				res, err := client.Do(req)
				if err != nil {
					t.Error(err)
				} else {
					if _, err := res.Body.Read(make([]byte, 1)); err != nil || res.StatusCode != http.StatusOK {
						t.Errorf("%s: %s, %v", path, res.Status, err)
					}
					_ = res.Body.Close()
				}
				cancel()
			}
		})
	}
	for k := range n {
		visit <- paths[k%len(paths)]
	}
	close(visit)
	wg.Wait()
	eventually(t, "all streams have ended", func() bool {
		return f.bounds.OpenStreams() == 0 && f.bounds.OpenCalls() == 0 && f.sse.CountOpen() == 0 && f.pollers.CountOpen() == 0
	})
	// The feed of all runs lingers for a while, and concurrent tests have goroutines of their own.
	eventually(t, "less than one goroutine for two streams was added", func() bool { return runtime.NumGoroutine() < before+n/2 })
}
