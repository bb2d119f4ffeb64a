package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchyard/activities/executor"
)

// agent is the attempt of an agent with its tools.
type agent struct {
	tree  *Tree
	shell *Shell
	log   *bytes.Buffer
	o     ShellOptions
}

// attemptOf returns the attempt of an agent in a workspace.
func attemptOf(t testing.TB, workspace string) executor.Attempt {
	return executor.Attempt{
		ID:       fmt.Sprintf("run@chain/%s-%d/c1", t.Name(), time.Now().UnixNano()),
		Identity: executor.Identity{Run: "run-" + strconv.FormatInt(time.Now().UnixNano(), 36), Task: "agent", Node: "test-tools", Index: -1, Claim: 1},
		Limits:   executor.Limits{Memory: 256 << 20, Processes: 100},
		Dirs:     executor.Dirs{Workspace: workspace, Temp: filepath.Join(workspace, "tmp"), Base: "/"}, Ending: executor.Ending{Grace: time.Second},
		Env: map[string]string{
			"ANTHROPIC_API_KEY": "sk-hunter2", "OPENAI_API_KEY": "sk-hunter2", "DB_PASSWORD": "hunter2", "GREETING": "hello",
			"SWITCHYARD_INPUT": filepath.Join(workspace, "input.json"),
		},
	}
}

func newAgent(t *testing.T, change func(*ShellOptions)) *agent {
	t.Helper()
	tree := newTree(t)
	a := &agent{tree: tree, log: &bytes.Buffer{}}
	a.o = ShellOptions{Attempt: attemptOf(t, filepath.Dir(tree.Path())), Hidden: []string{"DB_PASSWORD"}, Output: a.log}
	change(&a.o)
	a.shell = NewShell(tree, a.o)
	t.Cleanup(func() {
		if err := a.shell.Close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

func (a *agent) runs(t *testing.T, command string) Outcome {
	t.Helper()
	return call(t, a.shell, map[string]any{"command": command})
}

// fakeSandbox is a sandbox whose commands are a function.
type fakeSandbox func(ctx context.Context, a executor.Attempt) executor.Result

func (fakeSandbox) Type() string                        { return "shell" }
func (fakeSandbox) Capabilities() executor.Capabilities { return executor.Capabilities{} }
func (fakeSandbox) CanSandbox() error                   { return nil }
func (fakeSandbox) Close() error                        { return nil }

func (f fakeSandbox) Batch(string, *executor.Lease) (executor.Batch, error) { return f, nil }

func (f fakeSandbox) Run(ctx context.Context, a executor.Attempt, spawned func()) (executor.Result, error) {
	spawned()
	if words := a.Spec.Fields["command"].GetListValue().GetValues(); words[len(words)-1].GetStringValue() == oneStream+"true" {
		return executor.Result{}, nil
	}
	return f(ctx, a), nil
}

func newFakeAgent(t *testing.T, run fakeSandbox) *agent {
	t.Helper()
	return newAgent(t, func(o *ShellOptions) { o.Sandbox = run })
}

// untilStopped prints a text and waits until the command is stopped.
func untilStopped(ctx context.Context, out io.Writer, text string) executor.Result {
	_, _ = io.WriteString(out, text)
	<-ctx.Done()
	return executor.Result{ExitCode: 143, Signal: "SIGTERM", Stopped: true}
}

func TestCommandsGetASandboxAndNoSecrets(t *testing.T) {
	for network, want := range map[bool]string{false: "none", true: "node"} {
		var got executor.Attempt
		a := newAgent(t, func(o *ShellOptions) {
			o.NodeNetwork, o.Attempt.Grace = network, time.Hour
			o.Sandbox = fakeSandbox(func(_ context.Context, a executor.Attempt) executor.Result {
				got = a
				return executor.Result{}
			})
		})
		if out := a.runs(t, "echo"); out.Text != "exit code 0\n(no output)" || out.IsError {
			t.Errorf("%+v", out)
		}
		fields := got.Spec.AsMap()
		if fields["sandbox"] != true || fields["network"] != want || fields["workingDirectory"] != a.tree.Path() || got.Grace != maxGrace {
			t.Errorf("the spec is %v, the grace period %v", fields, got.Grace)
		}
		if text := fmt.Sprint(got.Env); strings.Contains(text, "hunter2") || got.Env["GREETING"] != "hello" {
			t.Errorf("the variables are %s", text)
		}
	}
}

func TestMalformedCommandsAreRefused(t *testing.T) {
	a := newFakeAgent(t, func(context.Context, executor.Attempt) executor.Result {
		t.Error("a command runs")
		return executor.Result{}
	})
	for _, arguments := range []map[string]any{{"command": " "}, {"command": strings.Repeat("x", maxCommand+1)}, {}} {
		if out := call(t, a.shell, arguments); !out.IsError || len(out.Text) > 500 {
			t.Errorf("%.100q", out.Text)
		}
	}
}

func TestCommandsThatPrintForEverAreEnded(t *testing.T) {
	counted := &counter{}
	a := newAgent(t, func(o *ShellOptions) {
		o.Output = counted
		o.Sandbox = fakeSandbox(func(ctx context.Context, a executor.Attempt) executor.Result {
			_, _ = io.WriteString(a.Stdout, "first\n")
			for line := []byte(strings.Repeat("0123456789\n", 1000)); ctx.Err() == nil; {
				_, _ = a.Stdout.Write(line)
			}
			return untilStopped(ctx, a.Stdout, "")
		})
	})
	out := a.runs(t, "yes")
	if !out.IsError || !strings.HasPrefix(out.Text, "the command was ended: it printed more than 64 MiB") ||
		!strings.Contains(out.Text, "\nfirst\n") || !strings.Contains(out.Text, "bytes left out") || len(out.Text) > 33<<10 {
		t.Errorf("%d bytes: %.200q", len(out.Text), out.Text)
	}
	if counted.n > maxPrinted {
		t.Errorf("%d bytes in the log", counted.n)
	}
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

func TestTruncatedOutputShowsItsStartAndEnd(t *testing.T) {
	a := newFakeAgent(t, func(_ context.Context, a executor.Attempt) executor.Result {
		for i := range 100_000 {
			fmt.Fprintln(a.Stdout, i+1)
		}
		return executor.Result{}
	})
	out := a.runs(t, "seq 1 100000")
	if !strings.HasPrefix(out.Text, "exit code 0\n1\n2\n") || !strings.HasSuffix(out.Text, "\n99999\n100000\n") || len(out.Text) > 33<<10 ||
		!strings.Contains(out.Text, fmt.Sprintf("[... %d bytes left out ...]", 588895-(32<<10))) {
		t.Errorf("%d bytes, %q", len(out.Text), out.Text[:50])
	}
	if a.log.Len() != 588895 {
		t.Errorf("%d bytes in the log", a.log.Len())
	}
}

func TestCommandsEndByTheirTimeout(t *testing.T) {
	for seconds, want := range map[int]time.Duration{15: 15 * time.Second, 0: defaultTimeout, 1_000_000: maxTimeout} {
		synctest.Test(t, func(t *testing.T) {
			a := newFakeAgent(t, func(ctx context.Context, a executor.Attempt) executor.Result {
				return untilStopped(ctx, a.Stdout, "waits\n")
			})
			began := time.Now()
			out := call(t, a.shell, map[string]any{"command": "sleep 1000", "timeoutSeconds": seconds})
			if took := time.Since(began); !out.IsError || out.Text != fmt.Sprintf("the command was ended: it ran longer than %s\nwaits\n", want) || took != want {
				t.Errorf("%q after %v", out.Text, took)
			}
		})
	}
}

func TestCancelEndsACommand(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the run was cancelled")
	a := newFakeAgent(t, func(ctx context.Context, a executor.Attempt) executor.Result {
		cancel(cause)
		return untilStopped(ctx, a.Stdout, "")
	})
	for range 2 {
		if _, err := a.shell.Call(ctx, Call{Arguments: []byte(`{"command":"sleep 1000"}`)}); !errors.Is(err, cause) {
			t.Errorf("error %v", err)
		}
	}
}

func TestSignalsAndMemoryAreNamed(t *testing.T) {
	for want, result := range map[string]executor.Result{
		"exit code 3":                      {ExitCode: 3},
		"exit code 137: killed by SIGKILL": {ExitCode: 137, Signal: "SIGKILL"},
		"exit code 137: killed by the kernel: it exceeded the memory limit of the task": {ExitCode: 137, Signal: "SIGKILL", OOMKilled: true},
	} {
		a := newFakeAgent(t, func(context.Context, executor.Attempt) executor.Result { return result })
		if out := a.runs(t, "x"); out.Text != want+"\n(no output)" || !out.IsError {
			t.Errorf("%+v, want %s", out, want)
		}
	}
}

func TestAgentWithoutASandboxIsRefusedBeforeItStarts(t *testing.T) {
	a := newAgent(t, func(o *ShellOptions) {})
	if err := a.shell.Check(t.Context()); !errors.Is(err, ErrNoSandbox) || !strings.Contains(err.Error(), "`image`") || !strings.Contains(err.Error(), "capability `sandbox`") {
		t.Errorf("error %v", err)
	}
	b := newAgent(t, func(o *ShellOptions) { o.Sandbox = incapable{} })
	if err := b.shell.Check(t.Context()); !errors.Is(err, ErrNoSandbox) || !strings.Contains(err.Error(), "not today") {
		t.Errorf("error %v", err)
	}
	c := newAgent(t, func(o *ShellOptions) { o.Image = "x" })
	if err := c.shell.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "capability `container`") {
		t.Errorf("error %v", err)
	}
}

type incapable struct{ Sandboxer }

func (incapable) CanSandbox() error { return errors.New("not today") }
