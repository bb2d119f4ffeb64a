package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"switchyard/dev/processes"
)

func TestExitCodes(t *testing.T) {
	t.Parallel()
	failing := write(t, "name: failing\ntasks: { a: { type: shell, spec: { command: exit 3 }, retry: { maxRetries: 0 } } }\n")
	impossible := write(t, "name: impossible\ntasks: { a: { type: shell, spec: { command: 'true' }, constraints: { nodeLabels: [quantum] } } }\n")
	typo := write(t, "name: typo\ntasks:\n  a: { type: shel, spec: { command: 'true' }, dependson: [b] }\n")
	for _, test := range []struct {
		name string
		args []string
		code int
		says string // on standard error
	}{
		{"failed", []string{"run", failing}, 1, "task a failed on local, attempt 0: exit code 3"},
		// The embedded fleet is closed, so the run ends with the missing requirement.
		{"impossible", []string{"run", "--placement-timeout", "200ms", impossible}, 1, "quantum"},
		{"bad definition", []string{"run", typo}, 2, "did you mean"},
		{"no gateway", []string{"runs", "list", "--gateway", "http://127.0.0.1:1"}, 3, "switchyard dev"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run(t, test.args...)
			if code != test.code || stdout != "" {
				t.Errorf("exit code %d, want %d; standard output %q, want none", code, test.code, stdout)
			}
			if !strings.Contains(stderr, test.says) {
				t.Errorf("standard error lacks %q:\n%s", test.says, stderr)
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
		if got := processes.ParseRun(t, stdout).Tasks[task]; got.Node != node || got.Result.Stdout != node+"\n" {
			t.Errorf("task %s ran on %s and says %q, want %s", task, got.Node, got.Result.Stdout, node)
		}
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
	nightly := processes.ParseRun(t, stdout)
	if code != 0 || nightly.State != "completed" {
		t.Fatalf("the definition ends with exit code %d: %s", code, stderr)
	}
	for task, want := range map[string]string{"test": "completed", "build": "completed", "deploy": "completed", "notify-failure": "skipped"} {
		if nightly.Tasks[task].State != want {
			t.Errorf("%s is %s, want %s", task, nightly.Tasks[task].State, want)
		}
	}
	if text := nightly.Tasks["deploy"].Result.Stdout; !strings.HasPrefix(text, "version 1.") {
		t.Errorf("deploy has printed %q", text)
	}
	_, help, _ := run(t, "--help")
	for _, command := range regexp.MustCompile("`switchyard ([a-z]+)").FindAllSubmatch(text, -1) {
		if !regexp.MustCompile(`(?m)^  ` + string(command[1]) + ` `).MatchString(help) {
			t.Errorf("the help lacks switchyard %s:\n%s", command[1], help)
		}
	}
}
