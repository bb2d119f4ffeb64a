package shell

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"switchyard/activities/executor"
)

// runSpec executes a spec in an attempt with a directory of its own, and returns its output.
func runSpec(t *testing.T, e *Executor, fields map[string]any, env map[string]string) (executor.Result, string, error) {
	t.Helper()
	var out strings.Builder
	dir := t.TempDir()
	a := executor.Attempt{ID: t.Name() + "/c1", Identity: executor.Identity{Node: "n1"}, Spec: spec(t, fields), Env: env, Dirs: executor.Dirs{Base: dir, Workspace: dir}, Streams: executor.Streams{Stdout: &out}, Ending: executor.Ending{Grace: time.Second}}
	if env == nil {
		a.Env = map[string]string{}
	}
	a.Env["SWITCHYARD_NODE"] = "n1"
	r, err := e.Run(t.Context(), a, func() {})
	return r, strings.ReplaceAll(out.String(), dir, "DIR"), err
}

// echoing is an interpreter that prints its arguments and the file that it reads.
const echoing = "#!/bin/sh\nprintf '<%s>' \"$0\" \"$@\"\nfor file; do :; done\ncat \"$file\"\n"

func TestCommandRunsWithTheInterpreterThatItAsks(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Options{})
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "echoing"), []byte(echoing), 0o755); err != nil {
		t.Fatal(err)
	}
	env := func() map[string]string { return map[string]string{"PATH": bin + ":/usr/bin:/bin"} }
	echo := filepath.Join(bin, "echoing")
	long := strings.Repeat("x", 200_000) + "\n"
	for name, test := range map[string]struct {
		fields map[string]any
		code   int
		want   string
	}{
		"#! line":              {map[string]any{"command": "#!" + echo + " a  b\nx '$y'\n"}, 0, "<" + echo + "><a  b><DIR/script>#!" + echo + " a  b\nx '$y'\n"},
		"#! line and env":      {map[string]any{"command": "#!/usr/bin/env echoing\nx"}, 0, "<" + echo + "><DIR/script>#!/usr/bin/env echoing\nx"},
		"#! line without -e":   {map[string]any{"command": "#!/bin/sh\nfalse\necho on\nexit 7"}, 7, "on\n"},
		"longer than argument": {map[string]any{"command": "#!/bin/sh\n: " + strings.Repeat("x", 1<<20) + "\necho long"}, 0, "long\n"},
		"longer, for sh":       {map[string]any{"command": "echo $0 $#\n#" + long + "false\necho on"}, 1, "sh 0\n"},
		"longer, one line":     {map[string]any{"command": "false; echo \"$0\" on #" + long}, 0, "sh on\n"},
		"longer, for bash":     {map[string]any{"command": "a=(1 2); echo ${a[1]} $0\n#" + long + "false | cat\necho on", "shell": "bash"}, 1, "2 bash\n"},
		"longer, a syntax":     {map[string]any{"command": "echo on\n#" + long + "if then"}, 2, "on\n"},
		"shell of a list":      {map[string]any{"command": "a  $b", "shell": []any{"printf", "<%s>", "-e"}}, 0, "<-e><a  $b>"},
		"shell sh":             {map[string]any{"command": "false\necho on", "shell": "sh"}, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r, out, err := runSpec(t, e, test.fields, env())
			if err != nil || r.ExitCode != test.code || out != test.want {
				t.Errorf("exit code %d, error %v, printed %q, want %q", r.ExitCode, err, out, test.want)
			}
		})
	}
}

func TestInterpreterThatTheNodeLacksIsABadSpec(t *testing.T) {
	t.Parallel()
	e := newExecutor(t, Options{})
	for name, test := range map[string]struct {
		fields map[string]any
		want   string
	}{
		"by path":         {map[string]any{"command": "#!/opt/none/python3\nx"}, "the #! line names /opt/none/python3, which does not run on node n1"},
		"through env":     {map[string]any{"command": "#!/usr/bin/env nonesuch\nx"}, "the #! line names nonesuch, which does not run on node n1"},
		"two words":       {map[string]any{"command": "#!/usr/bin/env sh -e\nx"}, "the #! line names sh -e, which does not run on node n1"},
		"a directory":     {map[string]any{"command": "#!/etc\nx"}, "permission denied"},
		"spec.shell":      {map[string]any{"command": "x", "shell": []any{"nonesuch", "-c"}}, "spec.shell names nonesuch, which does not run on node n1"},
		"a wrong word":    {map[string]any{"command": "x", "shell": "zsh"}, "[zsh, -c]"},
		"no shell at all": {map[string]any{"command": "x", "shell": 3.0}, "neither a word nor a list"},
	} {
		t.Run(name, func(t *testing.T) {
			_, out, err := runSpec(t, e, test.fields, nil)
			if start := executor.AsStartError(err); start == nil || !start.BadSpec || !strings.Contains(err.Error(), test.want) || out != "" {
				t.Errorf("error %v, want %s; printed %q", err, test.want, out)
			}
		})
	}
}

// TestNodeWithoutAShellRunsProgramsOnly checks that an executor on a machine without sh runs commands that are lists.
func TestNodeWithoutAShellRunsProgramsOnly(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	e := newExecutor(t, Options{})
	if r, out, err := runSpec(t, e, map[string]any{"command": []any{"/bin/echo", "on"}}, nil); err != nil || r.ExitCode != 0 || out != "on\n" {
		t.Errorf("a list: exit code %d, error %v, printed %q", r.ExitCode, err, out)
	}
	_, _, err := runSpec(t, e, map[string]any{"command": "echo on"}, nil)
	if start := executor.AsStartError(err); start == nil || !start.BadSpec || !strings.Contains(err.Error(), "node n1 has no sh") {
		t.Errorf("a string: %v", err)
	}
}
