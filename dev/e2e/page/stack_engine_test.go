//go:build engines

package page

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// limit bounds how long a test waits for an event that must happen. It far exceeds the time that anything takes, so
// that no test fails on a slow machine.
const limit = 3 * time.Minute

// process is a started switchyard process.
type process struct {
	cmd    *exec.Cmd
	lines  chan string // of standard output; closed at its end
	stderr *bytes.Buffer
	ended  chan struct{}
	stop   func() // kills the process and waits for its end
}

// start starts the binary with additional environment variables. The process ends with the test.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{cmd: exec.Command(binary, args...), lines: make(chan string, 1000), stderr: &bytes.Buffer{}, ended: make(chan struct{})}
	p.cmd.Dir, p.cmd.Env, p.cmd.Stderr = repository, append(cleanEnv(), env...), p.stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.ended)
		defer close(p.lines)
		for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
			select {
			case p.lines <- scanner.Text():
			default: // more lines than any test reads
			}
		}
		_ = p.cmd.Wait() // the process was killed
	}()
	p.stop = sync.OnceFunc(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	t.Cleanup(func() {
		p.stop()
		if text := p.stderr.String(); t.Failed() {
			t.Logf("switchyard %s\n%s", strings.Join(args, " "), text[max(0, len(text)-4000):])
		}
	})
	return p
}

// field waits for a line that begins with a name, and returns the rest of the line.
func (p *process) field(t *testing.T, name string) string {
	t.Helper()
	deadline := time.After(limit)
	for {
		select {
		case line, ok := <-p.lines:
			if !ok {
				t.Fatalf("the output ended without %s\n%s", name, p.stderr)
			}
			if value, ok := strings.CutPrefix(line, name); ok {
				return strings.TrimSpace(value)
			}
		case <-deadline:
			t.Fatalf("there is no line with %s", name)
		}
	}
}

// cleanEnv returns this process's environment without variables that would point the binary at a real cluster.
func cleanEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "SWITCHYARD_") && !strings.HasPrefix(kv, "TEMPORAL_") {
			env = append(env, kv)
		}
	}
	return env
}

// stack is a running `switchyard dev`.
type stack struct {
	*process
	temporal, gateway, store string
	token                    string // for calls, or ""
}

// startStack starts a stack of two nodes, local-1 and local-2.
func startStack(t *testing.T, args ...string) *stack {
	t.Helper()
	p := start(t, nil, append([]string{"dev", "--port", "0", "--gateway-port", "0", "--ui-port", "0", "--nodes", "2", "--max-parallel", "8"}, args...)...)
	s := &stack{process: p}
	s.temporal = p.field(t, "Temporal")
	_ = p.field(t, "Web UI")
	s.gateway = p.field(t, "Gateway")
	s.store = p.field(t, "Store")
	return s
}

// cli runs a command against the gateway and returns its output.
func (s *stack) cli(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, binary, append(args, "--gateway", s.gateway)...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = repository, cleanEnv(), &stdout, &stderr
	if s.token != "" {
		cmd.Env = append(cmd.Env, "SWITCHYARD_TOKEN="+s.token)
	}
	if err := cmd.Run(); err != nil {
		t.Fatalf("switchyard %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(stdout.String())
}

// submit starts a run of a definition and returns its ID.
func (s *stack) submit(t *testing.T, definition string, args ...string) string {
	t.Helper()
	return s.cli(t, append([]string{"submit", writeDefinition(t, definition)}, args...)...)
}

// put stores a workflow.
func (s *stack) put(t *testing.T, definition string) {
	t.Helper()
	s.cli(t, "workflows", "put", writeDefinition(t, definition))
}

// writeDefinition writes a definition into a folder of the test, and returns its path.
func writeDefinition(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "definition.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// call calls a service method with JSON.
func (s *stack) call(t *testing.T, method string, request, answer any) {
	t.Helper()
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.gateway+"/switchyard.v1."+method, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if s.token != "" {
		req.Header.Set("Authorization", "Bearer "+s.token)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s %v\n%s", method, res.Status, err, text)
	}
	if answer == nil {
		return
	}
	if err := json.Unmarshal(text, answer); err != nil {
		t.Fatal(err)
	}
}

// document is a run as JSON prints it.
type document struct {
	ID    string `json:"id"`
	State string `json:"state"`
	Tasks map[string]struct {
		State   string `json:"state"`
		Reason  string `json:"reason"`
		Node    string `json:"node"`
		Attempt int    `json:"attempt"`
	} `json:"tasks"`
}

// run reads a run from the gateway.
func (s *stack) run(t *testing.T, id string) document {
	t.Helper()
	var answer struct{ Run document }
	s.call(t, "RunService/GetRun", map[string]any{"id": id}, &answer)
	return answer.Run
}

// awaitRun waits until a run is in a state.
func (s *stack) awaitRun(t *testing.T, id, state string) {
	t.Helper()
	eventually(t, fmt.Sprintf("run %s is %s", id, state), func() bool { return s.run(t, id).State == state })
}

// awaitTask waits until a task of a run is in a state.
func (s *stack) awaitTask(t *testing.T, id, task, state string) {
	t.Helper()
	eventually(t, fmt.Sprintf("task %s of %s is %s", task, id, state), func() bool { return s.run(t, id).Tasks[task].State == state })
}

// awaitLog waits until the log of a task contains a text. Views without updates show only what is stored before.
func (s *stack) awaitLog(t *testing.T, id, task, text string) {
	t.Helper()
	eventually(t, fmt.Sprintf("the log of %s of %s has %q", task, id, text), func() bool { return strings.Contains(s.cli(t, "runs", "logs", id, task), text) })
}

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("this has not come true: %s", what)
		}
	}
}
