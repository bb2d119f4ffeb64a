package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"switchyard/dev/processes"
)

// TestRunsAgain lets a run fail, fixes the cause and continues it, repeats a part of it, and starts it anew with
// another input.
func TestRunsAgain(t *testing.T) {
	t.Parallel()
	s, dir := shared(t), t.TempDir()
	id := s.Submit(t, fmt.Sprintf(`
name: again
inputs: { who: { default: nobody } }
tasks:
  first: { type: shell, spec: { command: 'echo ${{ workflow.input.who }} >> %[1]s/first' } }
  second: { type: shell, spec: { command: 'echo >> %[1]s/second; test -e %[1]s/mended' }, dependsOn: [first], retry: { maxRetries: 0 } }
  third: { type: shell, spec: { command: 'echo >> %[1]s/third' }, dependsOn: [second] }
`, dir))
	s.End(t, id)
	lines := func(name string) int {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return 0
		}
		return strings.Count(string(text), "\n")
	}
	ran := func(first, second, third int) {
		t.Helper()
		if a, b, c := lines("first"), lines("second"), lines("third"); a != first || b != second || c != third {
			t.Errorf("the tasks ran %d, %d and %d times, want %d, %d and %d", a, b, c, first, second, third)
		}
	}
	ran(1, 1, 0)
	open(t, dir, "mended")
	do(t, s.Gateway, 0, "runs", "retry", id, "--watch")
	ran(1, 2, 1)
	if _, stderr := do(t, s.Gateway, 1, "runs", "retry", id); !strings.Contains(stderr, "--from") {
		t.Errorf("retrying a run that completed says\n%s", stderr)
	}
	do(t, s.Gateway, 0, "runs", "retry", id, "--from", "second", "--watch")
	ran(1, 3, 2)
	if _, stderr := do(t, s.Gateway, 2, "runs", "retry", id, "--from", "secnd"); !strings.Contains(stderr, "second") {
		t.Errorf("an unknown task is told as\n%s", stderr)
	}
	stdout, _ := do(t, s.Gateway, 0, "runs", "rerun", id, "--input", "who=42", "--watch")
	if other := strings.TrimSpace(stdout); other == id || !strings.HasPrefix(other, "again-") {
		t.Errorf("rerun prints %q", stdout)
	}
	ran(2, 4, 3)
	if text, _ := os.ReadFile(filepath.Join(dir, "first")); string(text) != "nobody\n42\n" {
		t.Errorf("the inputs were %q", text)
	}
}

// TestStoredWorkflows stores a definition, and plans and runs it by name, twice under the same key.
func TestStoredWorkflows(t *testing.T) {
	t.Parallel()
	s := shared(t)
	file := write(t, `
name: stored
inputs: { version: { required: true } }
tasks:
  say: { type: shell, spec: { command: 'echo ${{ workflow.input.version }}' } }
  never: { type: shell, spec: { command: 'true' }, dependsOn: [say], constraints: { nodeLabels: [quantum] }, when: all_failed }
`)
	do(t, s.Gateway, 0, "workflows", "put", file)
	if _, stderr := do(t, s.Gateway, 1, "workflows", "put", file); !strings.Contains(stderr, "--replace") {
		t.Errorf("storing it twice says\n%s", stderr)
	}
	do(t, s.Gateway, 0, "workflows", "put", file, "--replace")
	processes.Await(t, "it is listed", func() bool {
		names := ask[list[struct{ Name string }]](t, s.Gateway, "workflows", "list")
		return slices.Contains(names.Items, struct{ Name string }{"stored"})
	})
	stdout, _ := do(t, s.Gateway, 0, "workflows", "get", "stored")
	if code, _, stderr := run(t, "validate", write(t, stdout)); code != 0 {
		t.Errorf("what is stored is no definition: %s", stderr)
	}

	plan, _ := do(t, s.Gateway, 0, "submit", "--workflow", "stored", "--dry-run", "--input", "version=1.10")
	for _, want := range []string{"LEVEL", "1.10", "quantum"} {
		if !strings.Contains(plan, want) {
			t.Errorf("the plan lacks %q:\n%s", want, plan)
		}
	}
	if runs := ask[list[runItem]](t, s.Gateway, "runs", "list", "--workflow", "stored"); len(runs.Items) != 0 {
		t.Errorf("a dry run has started %v", runs.Items)
	}
	if _, stderr := do(t, s.Gateway, 2, "submit", "--workflow", "stored"); !strings.Contains(stderr, "version") {
		t.Errorf("a missing input is told as\n%s", stderr)
	}
	args := []string{"submit", "--workflow", "stored", "--idempotency-key", "k", "--input", "version=1.10"}
	first, _ := do(t, s.Gateway, 0, args...)
	second, stderr := do(t, s.Gateway, 0, append(args, "--watch")...)
	if first != second || !strings.Contains(stderr, "earlier request") {
		t.Errorf("two requests under a key start %q and %q: %s", first, second, stderr)
	}
	if say := s.Get(t, strings.TrimSpace(first)).Tasks["say"]; say.Result.Stdout != "1.10\n" {
		t.Errorf("say printed %q", say.Result.Stdout)
	}
	if _, stderr := do(t, s.Gateway, 1, append(args[:len(args)-1:len(args)-1], "version=2")...); !strings.Contains(stderr, "key") {
		t.Errorf("another input under the key says\n%s", stderr)
	}
	do(t, s.Gateway, 0, "workflows", "delete", "stored")
	do(t, s.Gateway, 2, "submit", "--workflow", "stored")
}
