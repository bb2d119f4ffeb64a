package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"switchyard/dev/chaos/drill"
	"switchyard/dev/testneeds"
)

// binary is the program under test, and repository the folder of its source.
var binary, repository string

func TestMain(m *testing.M) {
	drill.ServeIfAsked()
	// Most tests wait for processes that they have started. Each has about 200 MiB of them.
	testneeds.Parallel(6)
	os.Exit(build(m))
}

// build builds the binary, starts the shared stack, and runs the tests.
func build(m *testing.M) int {
	dir, err := os.MkdirTemp("", "switchyard-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if repository, err = filepath.Abs("../.."); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if binary, err = testneeds.Program("switchyard"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if sharedProcess, err = launch(binary, repository, []string{"TMPDIR=" + dir}, sharedCommand...); err != nil {
		fmt.Fprintln(os.Stderr, "start the shared stack:", err)
		return 1
	}
	defer sharedProcess.kill()
	return m.Run()
}

// limit bounds how long a test waits for an event that must happen. It far exceeds the time that anything takes, so
// that no test fails on a slow machine.
const limit = 5 * time.Minute

// process is a started process whose output is collected.
type process struct {
	cmd    *exec.Cmd
	stdout output
	stderr output
	ended  chan struct{}
}

// program is a switchyard process that a test uses.
type program struct {
	*process
	t *testing.T
}

// output collects the output of a program.
type output struct {
	mu    sync.Mutex
	text  bytes.Buffer
	news  chan struct{}
	ended bool
}

func (o *output) collect(r io.Reader) {
	buffer := make([]byte, 4096)
	for {
		n, err := r.Read(buffer)
		o.mu.Lock()
		o.text.Write(buffer[:n])
		o.ended = err != nil
		close(o.news)
		o.news = make(chan struct{})
		o.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// start starts the binary in the repository's folder with a clean environment.
func start(t *testing.T, args ...string) *program {
	t.Helper()
	return startIn(t, repository, nil, args...)
}

func startIn(t *testing.T, dir string, env []string, args ...string) *program {
	t.Helper()
	return startOther(t, binary, dir, env, args...)
}

// startOther starts a binary that may be of another release. The process ends with the test.
func startOther(t *testing.T, binary, dir string, env []string, args ...string) *program {
	t.Helper()
	started, err := launch(binary, dir, env, args...)
	if err != nil {
		t.Fatal(err)
	}
	p := &program{started, t}
	t.Cleanup(func() {
		p.kill()
		p.logIfFailed()
	})
	return p
}

// launch starts a binary with additional environment variables.
func launch(binary, dir string, env []string, args ...string) (*process, error) {
	p := &process{cmd: exec.Command(binary, args...), ended: make(chan struct{})}
	p.stdout.news, p.stderr.news = make(chan struct{}), make(chan struct{})
	p.cmd.Dir = dir
	p.cmd.Env = append(cleanEnv(), env...)
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	var copies sync.WaitGroup
	copies.Go(func() { p.stdout.collect(stdout) })
	copies.Go(func() { p.stderr.collect(stderr) })
	go func() {
		defer close(p.ended)
		copies.Wait()
		_ = p.cmd.Wait() // the exit code is read from the state
	}()
	return p, nil
}

// kill ends the process with SIGKILL and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.ended
}

// logIfFailed logs the output if the test has failed.
func (p *program) logIfFailed() {
	if p.t.Failed() {
		p.t.Logf("switchyard %s\nstdout:\n%s\nstderr:\n%s", strings.Join(p.cmd.Args[1:], " "), tail(p.stdout.String()), tail(p.stderr.String()))
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

func tail(s string) string { return s[max(0, len(s)-4000):] }

// wait waits for the program's end and returns its exit code.
func (p *program) wait() int {
	p.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(limit):
		p.t.Fatalf("switchyard %v has not ended", p.cmd.Args[1:])
	}
	return p.cmd.ProcessState.ExitCode()
}

// expect waits until the output has a line that contains the text, and returns that line.
func (p *program) expect(o *output, text string) string {
	p.t.Helper()
	deadline := time.After(limit)
	for {
		o.mu.Lock()
		all, news, ended := o.text.String(), o.news, o.ended
		o.mu.Unlock()
		for line := range strings.Lines(all) {
			if strings.Contains(line, text) && strings.HasSuffix(line, "\n") {
				return strings.TrimSuffix(line, "\n")
			}
		}
		if ended {
			p.t.Fatalf("the output ended without %q", text)
		}
		select {
		case <-news:
		case <-deadline:
			p.t.Fatalf("no line with %q", text)
		}
	}
}

// field waits for a line that begins with a name, and returns the rest of the line.
func (p *program) field(name string) string {
	p.t.Helper()
	return strings.TrimSpace(strings.TrimPrefix(p.expect(&p.stdout, name), name))
}

func (p *program) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// run runs the binary to its end.
func run(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	p := start(t, args...)
	code = p.wait()
	return code, p.stdout.String(), p.stderr.String()
}

// document is a run as JSON prints it.
type document struct {
	ID      string         `json:"id"`
	Name    string         `json:"name"`
	State   string         `json:"state"`
	Reason  string         `json:"reason"`
	Error   string         `json:"error"`
	Context map[string]any `json:"context"`
	Tasks   map[string]struct {
		State   string `json:"state"`
		Reason  string `json:"reason"`
		Node    string `json:"node"`
		Attempt int    `json:"attempt"`
		Error   string `json:"error"`
		Result  struct {
			ExitCode        int            `json:"exitCode"`
			Stdout          string         `json:"stdout"`
			Stderr          string         `json:"stderr"`
			StdoutTruncated bool           `json:"stdoutTruncated"`
			Output          map[string]any `json:"output"`
		} `json:"result"`
	} `json:"tasks"`
}

func parse(t *testing.T, text string) document {
	t.Helper()
	var d document
	if err := json.Unmarshal([]byte(text), &d); err != nil {
		t.Fatalf("not a JSON document: %v\n%s", err, tail(text))
	}
	return d
}

// write writes a definition into a folder of the test and returns its path.
func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "definition.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// eventually waits until the condition holds. It polls less and less often, because many conditions start a program.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	pause := 20 * time.Millisecond
	for deadline := time.Now().Add(limit); !holds(); pause = min(2*pause, 320*time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("this has not come true: %s", what)
		}
		time.Sleep(pause)
	}
}

// awaitText reads a text until it meets a condition, and returns it.
func awaitText(t *testing.T, what string, read func() string, holds func(text string) bool) string {
	t.Helper()
	var text string
	defer func() {
		if t.Failed() {
			t.Logf("%s: the last text was\n%s", what, tail(text))
		}
	}()
	eventually(t, what, func() bool {
		text = read()
		return holds(text)
	})
	return text
}

// alive reports whether a process exists and is not a zombie.
func alive(pid int) bool {
	if err := syscall.Kill(pid, 0); errors.Is(err, syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// outputOf runs a tool and returns its combined output.
func outputOf(t *testing.T, name string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = cleanEnv()
	out, err := cmd.CombinedOutput()
	return string(out), err
}
