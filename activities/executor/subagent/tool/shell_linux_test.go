package tool

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/shell"
	"switchyard/dev/testneeds"
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
		ID:           fmt.Sprintf("run@chain/%s-%d/c1", t.Name(), time.Now().UnixNano()),
		Identity:     executor.Identity{Run: "run-" + strconv.FormatInt(time.Now().UnixNano(), 36), Task: "agent", Node: "test-tools", Index: -1, Claim: 1},
		Limits:       executor.Limits{Memory: 256 << 20, Processes: 100},
		WorkspaceDir: workspace, TempDir: filepath.Join(workspace, "tmp"), BaseDir: "/", Grace: time.Second,
		Env: map[string]string{
			"ANTHROPIC_API_KEY": "sk-hunter2", "OPENAI_API_KEY": "sk-hunter2", "DB_PASSWORD": "hunter2", "GREETING": "hello",
			"SWITCHYARD_INPUT": filepath.Join(workspace, "input.json"),
		},
	}
}

// newSandboxedAgent returns an agent whose commands run in a sandbox, or skips the test.
func newSandboxedAgent(t *testing.T, change func(*ShellOptions)) *agent {
	t.Helper()
	e, err := shell.New(shell.Options{Environ: append(os.Environ(), "ANTHROPIC_API_KEY=sk-hunter2")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := e.CanSandbox(); err != nil {
		testneeds.Missing(t, "no sandboxes here: %v", err)
	}
	return newAgent(t, func(o *ShellOptions) {
		o.Sandbox = e
		if change != nil {
			change(o)
		}
	})
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

// agents runs a test with a sandboxed and a contained agent.
func agents(t *testing.T, each func(t *testing.T, a *agent)) {
	t.Helper()
	t.Run("sandbox", func(t *testing.T) { each(t, newSandboxedAgent(t, nil)) })
	t.Run("container", func(t *testing.T) { each(t, newContainedAgent(t, nil)) })
}

func TestCommandsRunInTheWorkDirectory(t *testing.T) {
	agents(t, func(t *testing.T, a *agent) {
		if err := a.shell.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ command, want string }{
			{"echo $GREETING; echo oops >&2; exit 3", "exit code 3\nhello\noops\n"},
			{"false\necho continues", "exit code 0\ncontinues\n"},
			{"true", "exit code 0\n(no output)"},
			{`printf '\377\000'`, "exit code 0\n\uFFFD\uFFFD"},
			{"cat", "exit code 0\n(no output)"},
			{"pwd | tail -c 6", "exit code 0\n/work\n"},
			{"echo kept >file; mkdir -p d; echo x >d/y", "exit code 0\n(no output)"},
			{"cat file d/y; echo more >>file", "exit code 0\nkept\nx\n"},
			{"cat $SWITCHYARD_INPUT", `exit code 0` + "\n" + `{"of":"the task"}`},
		} {
			out := a.runs(t, c.command)
			if out.Text != c.want || out.IsError == strings.HasPrefix(c.want, "exit code 0") {
				t.Errorf("%s: %+v, want %q", c.command, out, c.want)
			}
		}
		if !strings.Contains(a.log.String(), "hello\noops\ncontinues\n") {
			t.Errorf("the log is %q", a.log)
		}
		for _, arguments := range []map[string]any{{"command": " "}, {"command": "x\x00y"}, {"command": strings.Repeat("x", maxCommand+1)}, {}} {
			if out := call(t, a.shell, arguments); !out.IsError || len(out.Text) > 500 {
				t.Errorf("%.100q", out.Text)
			}
		}
	})
}

// The file tools can change what commands create, and vice versa.
func TestCommandsAndFilesWorkOnTheSameTree(t *testing.T) {
	agents(t, func(t *testing.T, a *agent) {
		tools := Files(a.tree)
		do := func(name string, arguments map[string]any) {
			t.Helper()
			if out := call(t, named(t, tools, name), arguments); out.IsError {
				t.Fatalf("%s: %s", name, out.Text)
			}
		}
		do("write_file", map[string]any{"path": "before/made", "content": "one\n"}) // before any command
		if out := a.runs(t, "echo two >>before/made && chmod 755 before/made && touch before/more && echo a >theirs && mkdir sub && chmod 700 sub && echo b >sub/x && chmod 600 sub/x"); out.IsError {
			t.Fatal(out.Text)
		}
		do("write_file", map[string]any{"path": "script", "content": "#!/bin/sh\necho runs\n"})
		do("write_file", map[string]any{"path": "new/deep/file", "content": "x"})
		do("edit_file", map[string]any{"path": "theirs", "old": "a", "new": "changed"})
		do("edit_file", map[string]any{"path": "sub/x", "old": "b", "new": "changed"})
		want := "exit code 0\nruns\nchanged\nchanged\none\ntwo\n"
		if out := a.runs(t, "./script && cat theirs sub/x before/made && echo y >>new/deep/file && touch new/deep/other && chmod 700 new/deep script && rm -r new"); out.Text != want {
			t.Errorf("%q, want %q", out.Text, want)
		}
	})
}

func TestRestoredTreeBelongsToCommands(t *testing.T) {
	agents(t, func(t *testing.T, a *agent) {
		source := newTree(t)
		for _, name := range []string{"x", "d"} {
			if name == "d" {
				if err := os.Mkdir(filepath.Join(source.Path(), "d"), 0o700); err != nil {
					t.Fatal(err)
				}
				name = "d/x"
			}
			if err := os.WriteFile(filepath.Join(source.Path(), name), []byte("old\n"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		data := mustPack(t, source.Path())
		for _, when := range []string{"before the first command", "after it"} {
			if err := Unpack(a.tree.Path(), data); err != nil {
				t.Fatal(err)
			}
			if out := a.runs(t, "echo new >>x && echo new >>d/x && touch d/y && chmod 755 x && cat x d/x"); out.Text != "exit code 0\nold\nnew\nold\nnew\n" {
				t.Errorf("%s: %q", when, out.Text)
			}
		}
	})
}

func TestCommandsFindNoKey(t *testing.T) {
	agents(t, func(t *testing.T, a *agent) {
		out := a.runs(t, fmt.Sprintf(`env; cat /proc/[0-9]*/environ /proc/%d/environ 2>/dev/null; cat /proc/%d/cmdline; ls /proc/%d/fd; true`, os.Getpid(), os.Getppid(), os.Getpid()))
		if out.IsError || !strings.Contains(out.Text, "GREETING=hello") || strings.Contains(out.Text, "hunter2") {
			t.Errorf("%s", out.Text)
		}
	})
}

func TestCommandsHaveNoPrivileges(t *testing.T) {
	agents(t, func(t *testing.T, a *agent) {
		// Extra arguments of the model have no effect.
		out := call(t, a.shell, map[string]any{
			"command":    `mount -t tmpfs none /mnt 2>&1; mount -t proc none /tmp 2>&1; ls /sys/kernel/debug/* 2>&1 | head -1; grep CapEff /proc/self/status; cat /dev/sda /dev/vda /dev/mem 2>&1 | head -c 20; ls -d /var/run/docker.sock /run/docker.sock 2>/dev/null && echo >/var/run/docker.sock`,
			"privileged": true, "sandbox": false, "user": "root", "image": "x", "mounts": []any{map[string]any{"hostPath": "/", "containerPath": "/host"}},
		})
		full := "000001ffffffffff"
		if strings.Contains(out.Text, full) || !strings.Contains(out.Text, "CapEff:") {
			t.Errorf("%s", out.Text)
		}
		if out := a.runs(t, `cat /host/etc/shadow; cat /etc/shadow | grep -c '\$'`); !out.IsError {
			t.Errorf("%s", out.Text)
		}
		if out := a.runs(t, `grep : /proc/self/net/dev`); strings.Count(out.Text, ":") > 1 {
			t.Errorf("it has a network: %s", out.Text)
		}
	})
}

func TestCommandsThatPrintForEverAreEnded(t *testing.T) {
	agents(t, func(t *testing.T, a *agent) {
		a.log = nil
		started := time.Now()
		counted := &counter{}
		o := a.o
		o.Output = counted
		s := NewShell(a.tree, o)
		defer s.Close()
		out := call(t, s, map[string]any{"command": "echo first; yes 0123456789012345678901234567890123456789"})
		if !out.IsError || !strings.HasPrefix(out.Text, "the command was ended: it printed more than 64 MiB") ||
			!strings.Contains(out.Text, "\nfirst\n") || !strings.Contains(out.Text, "bytes left out") || len(out.Text) > 33<<10 {
			t.Errorf("%d bytes: %.200q", len(out.Text), out.Text)
		}
		if counted.n > maxPrinted {
			t.Errorf("%d bytes in the log", counted.n)
		}
		t.Logf("ended after %s", time.Since(started))
	})
}

type counter struct{ n int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

func TestTruncatedOutputShowsItsStartAndEnd(t *testing.T) {
	a := newSandboxedAgent(t, nil)
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
	agents(t, func(t *testing.T, a *agent) {
		out := call(t, a.shell, map[string]any{"command": "trap '' TERM; echo waits; sleep 1000 & while :; do sleep 1; done", "timeoutSeconds": 15})
		if !out.IsError || out.Text != "the command was ended: it ran longer than 15s\nwaits\n" {
			t.Errorf("%q", out.Text)
		}
		if out := a.runs(t, "echo next"); out.Text != "exit code 0\nnext\n" {
			t.Errorf("%q", out.Text)
		}
	})
}

func TestCancelEndsACommand(t *testing.T) {
	agents(t, func(t *testing.T, a *agent) {
		if err := a.shell.Check(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		cause := errors.New("the run was cancelled")
		o := a.o
		o.Output = writerFunc(func([]byte) { cancel(cause) })
		s := NewShell(a.tree, o)
		defer s.Close()
		if _, err := s.Call(ctx, Call{Arguments: []byte(`{"command":"echo ready; sleep 1000"}`)}); !errors.Is(err, cause) {
			t.Errorf("error %v", err)
		}
		if _, err := s.Call(ctx, Call{Arguments: []byte(`{"command":"true"}`)}); !errors.Is(err, cause) {
			t.Errorf("error %v", err)
		}
	})
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}

func TestSignalsAndMemoryAreNamed(t *testing.T) {
	a := newSandboxedAgent(t, func(o *ShellOptions) { o.Attempt.Limits.Memory = 32 << 20 })
	if out := a.runs(t, "kill -9 $$"); out.Text != "exit code 137: killed by SIGKILL\n(no output)" || !out.IsError {
		t.Errorf("%+v", out)
	}
	if out := a.runs(t, "head -c 200000000 /dev/zero | tail | wc -c"); !strings.Contains(out.Text, "exceeded the memory limit") && !strings.Contains(out.Text, "Killed") {
		t.Errorf("%+v", out)
	}
}

// The sandbox user stays the same, and no process of a command stays behind.
func TestCommandsShareOneSandboxUser(t *testing.T) {
	a := newSandboxedAgent(t, nil)
	first := a.runs(t, "id -u; sleep 1000 & setsid sleep 1000 &")
	second := a.runs(t, "id -u; ps -eo stat,comm | grep '^[^Z].*sleep'; true")
	if first.Text != second.Text || strings.Contains(first.Text, "\n0\n") {
		t.Errorf("%q and %q", first.Text, second.Text)
	}
}

func TestNodeNetworkRequiresTheOption(t *testing.T) {
	a := newSandboxedAgent(t, func(o *ShellOptions) { o.NodeNetwork = true })
	want, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	if out := a.runs(t, "readlink /proc/self/ns/net"); out.Text != "exit code 0\n"+want+"\n" {
		t.Errorf("%q, want %s", out.Text, want)
	}
}

func TestAgentWithoutASandboxIsRefusedBeforeItStarts(t *testing.T) {
	a := newAgent(t, func(o *ShellOptions) {})
	if err := a.shell.Check(t.Context()); !errors.Is(err, ErrNoSandbox) || !strings.Contains(err.Error(), "`image`") || !strings.Contains(err.Error(), "capability `sandbox`") {
		t.Errorf("error %v", err)
	}
	e, err := shell.New(shell.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	b := newAgent(t, func(o *ShellOptions) { o.Sandbox = incapable{e} })
	if err := b.shell.Check(t.Context()); !errors.Is(err, ErrNoSandbox) || !strings.Contains(err.Error(), "not today") {
		t.Errorf("error %v", err)
	}
	c := newAgent(t, func(o *ShellOptions) { o.Image = "x" })
	if err := c.shell.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "capability `container`") {
		t.Errorf("error %v", err)
	}
}

type incapable struct{ *shell.Executor }

func (incapable) CanSandbox() error { return errors.New("not today") }
