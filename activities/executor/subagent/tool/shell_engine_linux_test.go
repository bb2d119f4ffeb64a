//go:build engines

package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchyard/activities/executor/shell"
	"switchyard/dev/testneeds"
)

// newSandboxedAgent returns an agent whose commands run in a sandbox.
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
		if out := a.runs(t, "x\x00y"); !out.IsError || len(out.Text) > 500 {
			t.Errorf("%.100q", out.Text)
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

// The sandbox user stays the same, and no process of a command stays behind.
func TestCommandsShareOneSandboxUser(t *testing.T) {
	a := newSandboxedAgent(t, nil)
	first := a.runs(t, "id -u; sleep 1000 & setsid sleep 1000 &")
	second := a.runs(t, "id -u; ps -eo stat,comm | grep '^[^Z].*sleep'; true")
	if first.Text != second.Text || strings.Contains(first.Text, "\n0\n") {
		t.Errorf("%q and %q", first.Text, second.Text)
	}
}
