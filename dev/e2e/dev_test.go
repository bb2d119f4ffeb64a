package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// devCommand starts a stack on free ports.
var devCommand = []string{"dev", "--port", "0", "--gateway-port", "0", "--ui-port", "0"}

// sharedCommand starts the shared stack of two nodes, local-1 and local-2, and sharedProcess is its process.
var (
	sharedCommand = append(devCommand, "--nodes", "2", "--max-parallel", "24", "--agent-tools", "shell,files,mcp,fleet")
	sharedProcess *process
)

// devStack is a running `switchyard dev`.
type devStack struct {
	*program
	temporal, ui, gateway, store string
}

// shared returns the stack for tests that end no part of it. A task that waits for another event than its own end takes
// no cores there, so that tests do not wait for each other.
func shared(t *testing.T) *devStack {
	t.Helper()
	p := &program{sharedProcess, t}
	t.Cleanup(p.logIfFailed)
	return stackOf(p)
}

func startDev(t *testing.T, args ...string) *devStack {
	t.Helper()
	return startDevWith(t, binary, nil, args...)
}

// startDevWith starts the stack of a binary that may be of another release, with additional environment variables.
func startDevWith(t *testing.T, binary string, env []string, args ...string) *devStack {
	t.Helper()
	return stackOf(startOther(t, binary, repository, env, append(devCommand[:len(devCommand):len(devCommand)], args...)...))
}

// stackOf waits until a stack is up.
func stackOf(p *program) *devStack {
	p.t.Helper()
	return &devStack{program: p, temporal: p.field("Temporal"), ui: p.field("Web UI"), gateway: p.field("Gateway"), store: p.field("Store")}
}

// submit starts a run of a definition and returns its ID.
func (s *devStack) submit(t *testing.T, definition string) string {
	t.Helper()
	var started struct{ ID string }
	if err := json.Unmarshal(request(t, http.MethodPost, s.gateway+"/v1/runs", "application/yaml", definition), &started); err != nil {
		t.Fatal(err)
	}
	return started.ID
}

// get returns a run with the first page of its tasks.
func (s *devStack) get(t *testing.T, id string) document {
	t.Helper()
	body := fetch(t, http.MethodPost, s.gateway+"/switchyard.v1.RunService/GetRun", `{"id":"`+id+`"}`)
	var answer struct{ Run document }
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Run
}

// end waits for the end of a run, and returns the run.
func (s *devStack) end(t *testing.T, id string) document {
	t.Helper()
	fetch(t, http.MethodGet, s.gateway+"/v1/runs/"+id+"/events?follow=true", "") // the stream ends with the run
	return s.get(t, id)
}

// awaitTask waits until a task of a run is in a state.
func (s *devStack) awaitTask(t *testing.T, id, task, state string) {
	t.Helper()
	eventually(t, task+" is "+state, func() bool { return s.get(t, id).Tasks[task].State == state })
}

// fetch sends a request with JSON, and returns the body of its response.
func fetch(t *testing.T, method, url, body string) []byte {
	t.Helper()
	return request(t, method, url, "application/json", body)
}

// request sends a request, and returns the body of its response.
func request(t *testing.T, method, url, kind, body string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode/100 != 2 {
		t.Fatalf("%s %s: %s %v\n%s", method, url, res.Status, err, tail(string(text)))
	}
	return text
}

// open creates the file that tasks of a test wait for.
func open(t *testing.T, dir, gate string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, gate), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// gate returns a command that waits until a file exists.
func gate(dir, name string) string {
	return fmt.Sprintf("while ! test -e %s/%s; do sleep 0.05; done", dir, name)
}

func TestDevServes(t *testing.T) {
	t.Parallel()
	if taken, err := net.Listen("tcp", "127.0.0.1:8233"); err == nil { // otherwise another process listens there
		defer taken.Close()
	}
	s := stackOf(start(t, "dev", "--port", "0", "--gateway-port", "0"))
	ui, note, _ := strings.Cut(s.ui, " ")
	if note = strings.TrimSpace(note); note != "(port 8233 is taken)" {
		t.Errorf("the address of the Web UI is %q", s.ui)
	}
	stdout, _ := do(t, s.gateway, 0, "submit", write(t, "name: hello\ntasks: { greet: { type: shell, spec: { command: echo hello } } }\n"))
	id := strings.TrimSpace(stdout)
	do(t, s.gateway, 0, "runs", "watch", id)
	if got := s.get(t, id).Tasks["greet"].Result.Stdout; got != "hello\n" {
		t.Errorf("stdout is %q", got)
	}
	for _, path := range []string{"", "/api/v1/namespaces/default/workflows/" + id} {
		if body := fetch(t, http.MethodGet, ui+path, ""); len(body) == 0 {
			t.Errorf("GET %s is empty", path)
		}
	}
	if _, err := os.Stat(filepath.Join(s.store, "runs", id)); err != nil {
		t.Errorf("the store that dev names does not hold the run: %v", err)
	}
	_, temporalPort, _ := strings.Cut(s.temporal, ":")
	_, uiPort, _ := strings.Cut(strings.TrimPrefix(ui, "http://"), ":")
	for _, taken := range []struct{ port, ui, says string }{
		{temporalPort, "0", temporalPort},
		{"0", uiPort, "port " + uiPort + " is taken; choose another with --ui-port"},
	} {
		code, _, stderr := run(t, "dev", "--port", taken.port, "--gateway-port", "0", "--ui-port", taken.ui)
		if code != 3 || !strings.Contains(stderr, taken.says) {
			t.Errorf("with the ports %v it exits with %d: %s", taken, code, stderr)
		}
	}
	s.signal(syscall.SIGTERM)
	if code := s.wait(); code != 0 {
		t.Errorf("dev exits with %d after SIGTERM, want 0", code)
	}
}

// TestStackContinuesAfterKill kills everything in the middle of two runs, and starts it again on the same database. The
// heartbeat time-out of one task far exceeds the test's wait.
func TestStackContinuesAfterKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db := filepath.Join(dir, "db")
	s := startDev(t, "--db", db)
	id := s.submit(t, fmt.Sprintf(`
name: survivor
defaults: { type: shell, resources: { cores: 0 } }
tasks:
  before: { spec: { command: echo once >> %[1]s/before } }
  during: { dependsOn: [before], spec: { command: '%[2]s' }, retry: { backoffMs: 10 } }
  after: { dependsOn: [during], spec: { command: echo after } }
`, dir, gate(dir, "gate")))
	definition, pids := processTree(t, true)
	stdout, _ := do(t, s.gateway, 0, "submit", write(t, definition), "--heartbeat-timeout", "1h")
	patient := strings.TrimSpace(stdout)
	do(t, s.gateway, 0, "workflows", "put", write(t, "name: kept\ntasks: { greet: { type: shell, spec: { command: echo hello } } }\n"))
	tree := pids()
	s.awaitTask(t, id, "during", "running")
	s.signal(syscall.SIGKILL)
	s.wait()
	eventually(t, "the processes of the task have ended with their node", func() bool { return dead(tree) })

	open(t, dir, "gate")
	s = startDev(t, "--db", db)
	if d := s.end(t, id); d.State != "completed" || d.Tasks["after"].Result.Stdout != "after\n" {
		t.Errorf("the run is %s, the last task printed %q", d.State, d.Tasks["after"].Result.Stdout)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "before")); err != nil || string(text) != "once\n" {
		t.Errorf("the task before ran as %q, %v; want once", text, err)
	}
	eventually(t, "the task of the other run has started again", func() bool {
		task := s.get(t, patient).Tasks["tree"]
		return task.State == "running" && task.Attempt == 1
	})
	do(t, s.gateway, 0, "submit", "--workflow", "kept", "--watch")
}
