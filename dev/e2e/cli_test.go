package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	good := write(t, "name: good\ntasks:\n  a: { type: shell, spec: { command: 'true' } }\n")
	failing := write(t, "name: failing\ntasks:\n  a: { type: shell, spec: { command: exit 3 }, retry: { maxRetries: 0 } }\n")
	typo := write(t, "name: typo\ntasks:\n  a: { type: shel, spec: { command: 'true' }, dependson: [b] }\n")
	for _, test := range []struct {
		name string
		args []string
		code int
		says string // on standard error
	}{
		{"completed", []string{"run", good}, 0, ""},
		{"failed", []string{"run", failing}, 1, "task a failed on local, attempt 0: exit code 3"},
		{"bad definition", []string{"run", typo}, 2, "did you mean"},
		{"validate", []string{"validate", typo}, 2, "did you mean"},
		{"validate a good one", []string{"validate", good}, 0, ""},
		{"no such file", []string{"run", "no-such-file.yaml"}, 2, "no-such-file.yaml"},
		{"unknown flag", []string{"run", good, "--nodez", "3"}, 2, "nodez"},
		{"unknown command", []string{"runn", good}, 2, "run"},
		{"no gateway", []string{"runs", "list", "--gateway", "http://127.0.0.1:1"}, 3, "switchyard dev"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run(t, test.args...)
			if code != test.code {
				t.Errorf("exit code %d, want %d", code, test.code)
			}
			if !strings.Contains(stderr, test.says) {
				t.Errorf("standard error lacks %q:\n%s", test.says, stderr)
			}
			if test.args[0] == "run" && stdout != "" {
				t.Errorf("standard output is %q, want none", stdout)
			}
		})
	}
}

func TestThreeNodes(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := run(t, "run", "--nodes", "3", "-o", "json", write(t, `
name: three
tasks:
  a: { type: shell, spec: { command: 'echo "$SWITCHYARD_NODE"' }, constraints: { targetNode: local-1 } }
  b: { type: shell, spec: { command: 'echo "$SWITCHYARD_NODE"' }, constraints: { targetNode: local-2 } }
  c: { type: shell, spec: { command: 'echo "$SWITCHYARD_NODE"' }, constraints: { targetNode: local-3 } }
`))
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for task, node := range map[string]string{"a": "local-1", "b": "local-2", "c": "local-3"} {
		if got := parse(t, stdout).Tasks[task]; got.Node != node || got.Result.Stdout != node+"\n" {
			t.Errorf("task %s ran on %s and says %q, want %s", task, got.Node, got.Result.Stdout, node)
		}
	}
}

// TestImpossible asks for a node that cannot exist. The embedded fleet is closed, so the run ends with the missing
// requirement.
func TestImpossible(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := run(t, "run", "--placement-timeout", "200ms", "-o", "json", write(t, `
name: impossible
tasks:
  a: { type: shell, spec: { command: 'true' }, constraints: { nodeLabels: [quantum] } }
`))
	if code != 1 {
		t.Fatalf("exit code %d, want 1: %s", code, stderr)
	}
	if a := parse(t, stdout).Tasks["a"]; a.State != "failed" || a.Reason != "placement_timeout" || !strings.Contains(a.Error, "quantum") {
		t.Errorf("the task is %s (%s): %s", a.State, a.Reason, a.Error)
	}
}

func TestSeedDefinitionIsAccepted(t *testing.T) {
	t.Parallel()
	code, _, stderr := run(t, "validate", filepath.Join(repository, "workflows/definition/testdata/good/build-and-deploy.json"))
	if code != 0 {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestSchema(t *testing.T) {
	t.Parallel()
	code, stdout, _ := run(t, "schema")
	var schema map[string]any
	if err := json.Unmarshal([]byte(stdout), &schema); code != 0 || err != nil || schema["$schema"] == nil {
		t.Errorf("exit code %d, %v", code, err)
	}
}

// TestReadme checks the README's promises: its first two commands are in its first 20 lines, its definition runs
// unchanged in any folder, and every command that it names exists.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(repository, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	top := strings.Join(strings.SplitN(string(text), "\n", 21)[:20], "\n")
	first, second := strings.Index(top, "go run . run dev/examples/build-and-deploy.yaml"), strings.Index(top, "go test ./...")
	if first < 0 || second < first {
		t.Error("the first 20 lines do not hold the two commands in order")
	}
	definition := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindSubmatch(text)
	if definition == nil {
		t.Fatal("no definition")
	}
	code, stdout, stderr := run(t, "run", write(t, string(definition[1])), "-o", "json")
	var nightly struct {
		State string
		Tasks map[string]struct {
			State  string
			Result struct{ Stdout string }
		}
	}
	if err := json.Unmarshal([]byte(stdout), &nightly); code != 0 || err != nil || nightly.State != "completed" {
		t.Fatalf("the definition ends with exit code %d: %v, %s", code, err, stderr)
	}
	for task, want := range map[string]string{"test": "completed", "build": "completed", "deploy": "completed", "notify-failure": "skipped"} {
		if nightly.Tasks[task].State != want {
			t.Errorf("%s is %s, want %s", task, nightly.Tasks[task].State, want)
		}
	}
	if text := nightly.Tasks["deploy"].Result.Stdout; !strings.HasPrefix(text, "version 1.") {
		t.Errorf("deploy has printed %q", text)
	}
	for _, command := range regexp.MustCompile("`switchyard ([a-z]+)").FindAllSubmatch(text, -1) {
		if code, _, stderr := run(t, string(command[1]), "--help"); code != 0 {
			t.Errorf("switchyard %s: %s", command[1], stderr)
		}
	}
}
