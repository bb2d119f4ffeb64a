package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"switchyard/dev/testneeds"
)

// curlStream runs `curl -N` until the stream ends, and returns the fields of its events as "event id data".
func curlStream(t *testing.T, url string) [][3]string {
	t.Helper()
	if _, err := exec.LookPath("curl"); err != nil {
		testneeds.Missing(t, "curl is not installed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	out, err := exec.CommandContext(ctx, "curl", "-sSfN", url).Output()
	if err != nil {
		t.Fatalf("curl -N %s: %v", url, err)
	}
	var events [][3]string
	var event [3]string
	lines := bufio.NewScanner(strings.NewReader(string(out)))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "event":
			event[0] = value
		case "id":
			event[1] = value
		case "data":
			event[2] = value
		case "":
			if event[2] != "" {
				events = append(events, event)
			}
			event = [3]string{}
		}
	}
	return events
}

// TestCurlFollowsARunOf200Tasks checks that `curl -N` follows a run of 200 tasks to its end, and gets each of its
// events once, as listed, and their logs.
func TestCurlFollowsARunOf200Tasks(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	var document strings.Builder
	document.WriteString("name: wide\ntasks:\n")
	for k := range 200 {
		fmt.Fprintf(&document, "  t%d: { type: shell, spec: { command: echo line %d }, resources: { cores: 0.1 } }\n", k, k)
	}
	id := s.submit(t, write(t, document.String()))
	counts := map[string]int{}
	var ids []string
	events := curlStream(t, s.gateway+"/v1/runs/"+id+"/events?follow=true")
	for _, e := range events {
		counts[e[0]]++
		if e[1] != "" {
			ids = append(ids, e[1])
		}
	}
	var end struct{ Run, State string }
	last := events[len(events)-1]
	if err := json.Unmarshal([]byte(last[2]), &end); err != nil || last[0] != "end" || end.Run != id || end.State != "completed" {
		t.Errorf("the last event is %v, %v", last, err)
	}
	if counts["started"] != 200 || counts["completed"] != 201 || counts["end"] != 1 {
		t.Errorf("the stream has %v", counts)
	}
	out, err := exec.CommandContext(t.Context(), "curl", "-sSf", s.gateway+"/v1/runs/"+id+"/events?pageSize=10000").Output()
	if err != nil {
		t.Fatal(err)
	}
	var listed list[struct{ ID string }]
	if err := json.Unmarshal(out, &listed); err != nil || listed.NextPageToken != "" {
		t.Fatalf("the list is %s, %v", tail(string(out)), err)
	}
	seen := map[string]bool{}
	for _, id := range ids {
		if seen[id] {
			t.Errorf("event %s came twice", id)
		}
		seen[id] = true
	}
	if len(ids) != len(listed.Items)+1 {
		t.Errorf("the stream has %d events, and the list %d", len(ids)-1, len(listed.Items))
	}
	for _, e := range listed.Items {
		if !seen[e.ID] {
			t.Errorf("event %s did not come", e.ID)
		}
	}
	eventually(t, "the log has the line of each task", func() bool {
		printed := map[string]bool{}
		for _, e := range curlStream(t, s.gateway+"/runs/"+id+"/logs?follow=true") {
			var line struct{ Task, Text string }
			if err := json.Unmarshal([]byte(e[2]), &line); err != nil {
				t.Fatal(err)
			}
			if e[0] == "log" {
				printed[line.Task+": "+line.Text] = true
			}
		}
		for k := range 200 {
			if want := fmt.Sprintf("t%d: line %d", k, k); !printed[want] {
				t.Logf("%q is not in the log", want)
				return false
			}
		}
		return true
	})
	// These are the commands of the README that end by themselves.
	for _, path := range []string{"/v1/runs/last/events?follow=true", "/v1/runs/last/logs?follow=true&tail=10", "/v1/runs/last/tasks/t7/logs?follow=true"} {
		got := curlStream(t, s.gateway+path)
		if len(got) == 0 || got[len(got)-1][0] != "end" {
			t.Errorf("%s ends with %v", path, got)
		}
	}
}
