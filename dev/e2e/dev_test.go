package e2e

import (
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

// devStack is a running `switchyard dev`.
type devStack struct {
	*program
	temporal, ui, gateway string
}

func startDev(t *testing.T, args ...string) *devStack {
	t.Helper()
	return startDevOf(t, binary, args...)
}

// startDevOf starts the stack of a binary that may be of another release.
func startDevOf(t *testing.T, binary string, args ...string) *devStack {
	t.Helper()
	return startDevWith(t, binary, nil, args...)
}

// startDevWith starts the stack of a binary with additional environment variables.
func startDevWith(t *testing.T, binary string, env []string, args ...string) *devStack {
	t.Helper()
	p := startOther(t, binary, repository, env, append([]string{"dev", "--port", "0", "--gateway-port", "0", "--ui-port", "0"}, args...)...)
	s := &devStack{program: p}
	field := func(name string) string {
		line := p.expect(&p.stdout, name)
		return strings.TrimSpace(strings.TrimPrefix(line, name))
	}
	s.temporal, s.ui, s.gateway = field("Temporal"), field("Web UI"), field("Gateway")
	return s
}

func (s *devStack) submit(t *testing.T, definition string) string {
	t.Helper()
	code, stdout, stderr := run(t, "submit", definition, "--gateway", s.gateway)
	if code != 0 {
		t.Fatalf("submit exits with %d: %s", code, stderr)
	}
	return strings.TrimSpace(stdout)
}

func (s *devStack) get(t *testing.T, id string) document {
	t.Helper()
	code, stdout, stderr := run(t, "runs", "get", id, "--gateway", s.gateway, "-o", "json")
	if code != 0 {
		t.Fatalf("runs get exits with %d: %s", code, stderr)
	}
	return parse(t, stdout)
}

// peek returns the first page of a run's tasks without starting a command, for tests that poll.
func (s *devStack) peek(t *testing.T, id string) document {
	t.Helper()
	body := fetch(t, http.MethodPost, s.gateway+"/switchyard.v1.RunService/GetRun", `{"id":"`+id+`"}`)
	var answer struct{ Run document }
	if err := json.Unmarshal(body, &answer); err != nil {
		t.Fatal(err)
	}
	return answer.Run
}

func TestDevServes(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	id := s.submit(t, write(t, "name: hello\ntasks:\n  greet:\n    type: shell\n    spec: { command: echo hello }\n"))
	if code, _, stderr := run(t, "runs", "watch", id, "--gateway", s.gateway); code != 0 {
		t.Fatalf("watch exits with %d: %s", code, stderr)
	}

	t.Run("web UI", func(t *testing.T) {
		for _, path := range []string{"", "/api/v1/namespaces/default/workflows/" + id} {
			body := fetch(t, http.MethodGet, s.ui+path, "")
			if len(body) == 0 {
				t.Errorf("GET %s is empty", path)
			}
		}
	})
	t.Run("curl", func(t *testing.T) {
		if got := s.peek(t, id).Tasks["greet"].Result.Stdout; got != "hello\n" {
			t.Errorf("stdout is %q", got)
		}
	})
	t.Run("grpcurl", func(t *testing.T) {
		address := strings.TrimPrefix(s.gateway, "http://")
		out, err := outputOf(t, tool(t, "grpcurl"), "-plaintext", address, "list")
		if err != nil || !strings.Contains(out, "switchyard.v1.RunService") {
			t.Fatalf("%v\n%s", err, out)
		}
		out, err = outputOf(t, tool(t, "grpcurl"), "-plaintext", "-d", `{"id":"last"}`, address, "switchyard.v1.RunService/GetRun")
		if err != nil || !strings.Contains(out, id) {
			t.Fatalf("%v\n%s", err, out)
		}
		out, err = outputOf(t, tool(t, "grpcurl"), "-plaintext", address, "grpc.health.v1.Health/Check")
		if err != nil || !strings.Contains(out, "SERVING") {
			t.Fatalf("%v\n%s", err, out)
		}
		out, err = outputOf(t, tool(t, "grpcurl"), "-plaintext", "-d", `{"id":"nothing-like-it"}`, address, "switchyard.v1.RunService/GetRun")
		if err == nil || !strings.Contains(out, "NotFound") {
			t.Errorf("an unknown run gives %v\n%s", err, out)
		}
	})
	t.Run("store", func(t *testing.T) {
		line := s.expect(&s.stdout, "Store")
		if _, err := os.Stat(filepath.Join(strings.TrimSpace(strings.TrimPrefix(line, "Store")), "runs", id)); err != nil {
			t.Errorf("the store that dev names does not hold the run: %v", err)
		}
	})
	t.Run("taken port", func(t *testing.T) {
		_, port, _ := strings.Cut(s.temporal, ":")
		code, _, stderr := run(t, "dev", "--port", port, "--gateway-port", "0", "--ui-port", "0")
		if code != 3 || !strings.Contains(stderr, port) {
			t.Errorf("exit code %d, %q", code, stderr)
		}
		_, port, _ = strings.Cut(strings.TrimPrefix(s.ui, "http://"), ":")
		code, _, stderr = run(t, "dev", "--port", "0", "--gateway-port", "0", "--ui-port", port)
		if code != 3 || !strings.Contains(stderr, "port "+port+" is taken; choose another with --ui-port") {
			t.Errorf("exit code %d, %q", code, stderr)
		}
	})
	t.Run("taken default port of the web UI", func(t *testing.T) {
		if taken, err := net.Listen("tcp", "127.0.0.1:8233"); err == nil { // otherwise another process listens there
			defer taken.Close()
		}
		p := start(t, "dev", "--port", "0", "--gateway-port", "0")
		if line := p.expect(&p.stdout, "Web UI"); !strings.HasSuffix(strings.TrimSpace(line), "(port 8233 is taken)") {
			t.Errorf("it prints %q", line)
		}
		p.signal(syscall.SIGTERM)
		if code := p.wait(); code != 0 {
			t.Errorf("dev exits with %d after SIGTERM, want 0", code)
		}
	})

	s.signal(syscall.SIGTERM)
	if code := s.wait(); code != 0 {
		t.Errorf("dev exits with %d after SIGTERM, want 0", code)
	}
}

func fetch(t *testing.T, method, url, body string) []byte {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s %v\n%s", method, url, res.Status, err, tail(string(text)))
	}
	return text
}

// TestRunSurvivesKill kills everything in the middle of a run and restarts it on the same database.
func TestRunSurvivesKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, gate := filepath.Join(dir, "db"), filepath.Join(dir, "gate")
	definition := write(t, fmt.Sprintf(`
name: survivor
tasks:
  before: { type: shell, spec: { command: echo once >> %[1]s/before } }
  during:
    type: shell
    dependsOn: [before]
    spec: { command: 'echo $$ > %[1]s/started; while ! test -e %[1]s/gate; do sleep 0.1; done' }
    retry: { backoffMs: 10 }
  after: { type: shell, dependsOn: [during], spec: { command: echo after } }
`, dir))
	s := startDev(t, "--db", db)
	id := s.submit(t, definition)
	eventually(t, "the task runs", func() bool { _, err := os.Stat(filepath.Join(dir, "started")); return err == nil })
	s.signal(syscall.SIGKILL)
	s.wait()

	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s = startDev(t, "--db", db)
	if code, _, stderr := run(t, "runs", "watch", id, "--gateway", s.gateway); code != 0 {
		t.Fatalf("watch exits with %d: %s", code, stderr)
	}
	d := s.get(t, id)
	if d.State != "completed" || d.Tasks["after"].Result.Stdout != "after\n" {
		t.Errorf("the run is %s, the last task printed %q", d.State, d.Tasks["after"].Result.Stdout)
	}
	text, err := os.ReadFile(filepath.Join(dir, "before"))
	if err != nil || string(text) != "once\n" {
		t.Errorf("the task before ran as %q, %v; want once", text, err)
	}
}
