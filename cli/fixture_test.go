package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/cli/tui"
	"switchyard/dev/golden"
)

// begin is the time at which the runs of the tests were submitted, and the time of the tests' clock.
var begin = time.Date(2026, 3, 14, 15, 9, 26, 0, time.UTC)

func after(seconds float64) *timestamppb.Timestamp {
	return timestamppb.New(begin.Add(time.Duration(seconds * float64(time.Second))))
}

// buffer is a bytes.Buffer that several goroutines can use and that can wait for text.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
	news chan struct{}
}

func newBuffer() *buffer { return &buffer{news: make(chan struct{})} }

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.news)
	b.news = make(chan struct{})
	return b.text.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// await waits until the buffer contains a text.
func (b *buffer) await(t *testing.T, text string) {
	t.Helper()
	late := time.After(2 * time.Minute)
	for {
		b.mu.Lock()
		held, news := b.text.String(), b.news
		b.mu.Unlock()
		if strings.Contains(held, text) {
			return
		}
		select {
		case <-news:
		case <-late:
			t.Fatalf("%q has not come; there is\n%s", text, held)
		}
	}
}

// command is a running command.
type command struct {
	stdout, stderr *buffer
	sys            *system
	ctx            context.Context
	interrupt      context.CancelCauseFunc
	code           chan int
}

// start starts a command in this process.
func start(t *testing.T, env map[string]string, stdin string, args ...string) *command {
	t.Helper()
	return startWith(t, func(*system) {}, env, stdin, args...)
}

// startWith starts a command whose system is changed first.
func startWith(t *testing.T, change func(*system), env map[string]string, stdin string, args ...string) *command {
	t.Helper()
	c := newCommand(t, env, stdin)
	change(c.sys)
	go func() { c.code <- execute(c.ctx, c.sys, args) }()
	return c
}

// newCommand returns a command that has not been started.
func newCommand(t *testing.T, env map[string]string, stdin string) *command {
	c := &command{stdout: newBuffer(), stderr: newBuffer(), code: make(chan int, 1)}
	c.sys = &system{
		stdin:     strings.NewReader(stdin),
		stdout:    c.stdout,
		screen:    tui.NewScreen(c.stderr, func() (int, int) { return 80, 24 }),
		rawStdout: c.stdout, rawStderr: c.stderr,
		getenv: func(name string) string { return env[name] },
		now:    func() time.Time { return begin.Add(20 * time.Second) },
		zone:   time.UTC,

		forceAfter: time.Hour, killedEndTimeout: time.Hour, forceTimeout: time.Hour, forcedEndTimeout: time.Hour,
		answerTimeout: time.Hour, logsTimeout: time.Hour, pollInterval: 5 * time.Millisecond,
	}
	c.ctx, c.interrupt = context.WithCancelCause(t.Context())
	return c
}

func (c *command) wait(t *testing.T) int {
	t.Helper()
	select {
	case code := <-c.code:
		return code
	case <-time.After(2 * time.Minute):
		t.Fatalf("the command has not ended; stderr:\n%s", c.stderr)
		return 0
	}
}

// ends waits for the end of a command and checks its exit code and a text on its standard error.
func (c *command) ends(t *testing.T, code int, says string) {
	t.Helper()
	result{c.wait(t), c.stdout.String(), c.stderr.String()}.ends(t, code, says)
}

// result holds how a command ended.
type result struct {
	code           int
	stdout, stderr string
}

// run runs a command to its end.
func run(t *testing.T, args ...string) result {
	t.Helper()
	return runWith(t, nil, "", args...)
}

func runWith(t *testing.T, env map[string]string, stdin string, args ...string) result {
	t.Helper()
	c := start(t, env, stdin, args...)
	code := c.wait(t)
	return result{code, c.stdout.String(), c.stderr.String()}
}

// hello is a valid definition.
const hello = `name: hello
tasks:
  greet: { type: shell, spec: { command: echo hello } }
`

// write writes a file into a folder of the test and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// ends checks the exit code of a command and a text on its standard error.
func (r result) ends(t *testing.T, code int, says string) {
	t.Helper()
	if r.code != code || !strings.Contains(r.stderr, says) {
		t.Errorf("%+v, want exit code %d and %q", r, code, says)
	}
}

// prints checks the exit code of a command and a text on its standard output.
func (r result) prints(t *testing.T, code int, text string) {
	t.Helper()
	if r.code != code || !strings.Contains(r.stdout, text) {
		t.Errorf("%+v, want exit code %d and %q", r, code, text)
	}
}

// showsGolden runs a command once for each output format and compares its standard output with the golden file of the
// name and format. It returns what the last one has written to standard error.
func showsGolden(t *testing.T, name string, formats []string, args ...string) (stderr string) {
	t.Helper()
	for _, format := range formats {
		got := run(t, append(args[:len(args):len(args)], "-o", format)...)
		if got.code != 0 {
			t.Errorf("%+v", got)
		}
		golden.Check(t, "testdata/"+name+"-"+format+".golden", got.stdout)
		stderr = got.stderr
	}
	return stderr
}
