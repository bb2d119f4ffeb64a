package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// open creates the file that tasks of a test wait for.
func open(t *testing.T, dir, gate string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, gate), nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// gate returns a command that waits until a file exists.
func gate(dir, name string) string {
	return fmt.Sprintf("while ! test -e %s/%s; do sleep 0.05; done", dir, name)
}

// awaitTask waits until a task of a run is in a state.
func (s *devStack) awaitTask(t *testing.T, id, task, state string) {
	t.Helper()
	eventually(t, task+" is "+state, func() bool { return s.peek(t, id).Tasks[task].State == state })
}

// TestRunActionsSendRequestsAndSuggestRemedies pauses a run, holds and cancels tasks of it, and checks that late requests are refused with a remedy.
func TestRunActionsSendRequestsAndSuggestRemedies(t *testing.T) {
	t.Parallel()
	s, dir := startDev(t), t.TempDir()
	id := s.submit(t, write(t, fmt.Sprintf(`
name: steered
tasks:
  first: { type: shell, spec: { command: '%s' } }
  second: { type: shell, spec: { command: 'true' }, dependsOn: [first] }
  kept: { type: shell, spec: { command: 'true' }, dependsOn: [first] }
  endless: { type: shell, spec: { command: 'sleep 600' }, continueOnError: true }
`, gate(dir, "first"))))
	s.awaitTask(t, id, "first", "running")
	s.awaitTask(t, id, "endless", "running")

	do(t, s.gateway, 0, "runs", "hold", id, "kept")
	if _, stderr := do(t, s.gateway, 1, "runs", "hold", id, "first"); !strings.Contains(stderr, "runs cancel "+id+" first") {
		t.Errorf("holding a task that runs says\n%s", stderr)
	}
	if _, stderr := do(t, s.gateway, 2, "runs", "hold", id, "secnd"); !strings.Contains(stderr, "second") {
		t.Errorf("an unknown task is told as\n%s", stderr)
	}
	do(t, s.gateway, 0, "runs", "pause", id)
	if _, stderr := do(t, s.gateway, 1, "runs", "pause", id); !strings.Contains(stderr, "paused") {
		t.Errorf("pausing twice says\n%s", stderr)
	}
	eventually(t, "the run is paused", func() bool { return s.peek(t, id).State == "paused" })
	open(t, dir, "first")
	s.awaitTask(t, id, "first", "completed")
	do(t, s.gateway, 0, "runs", "cancel", id, "endless")
	s.awaitTask(t, id, "endless", "cancelled")
	if state := s.get(t, id).Tasks["second"].State; state == "running" || state == "completed" {
		t.Errorf("second is %s in a paused run", state)
	}
	do(t, s.gateway, 0, "runs", "resume", id)
	s.awaitTask(t, id, "second", "completed")
	if state := s.get(t, id).Tasks["kept"].State; state == "running" || state == "completed" {
		t.Errorf("kept is %s although it is held", state)
	}
	stdout, _ := do(t, s.gateway, 0, "runs", "get", id)
	if !strings.Contains(stdout, "held") {
		t.Errorf("nothing is said of a held task:\n%s", stdout)
	}
	do(t, s.gateway, 0, "runs", "release", id, "kept")
	do(t, s.gateway, 0, "runs", "watch", id)
	if _, stderr := do(t, s.gateway, 1, "runs", "pause", id); !strings.Contains(stderr, id) {
		t.Errorf("pausing a run that has ended says\n%s", stderr)
	}
	events := ask[list[eventItem]](t, s.gateway, "runs", "events", id)
	seen := map[string]bool{}
	for _, e := range events.Items {
		seen[e.Event] = true
	}
	for _, want := range []string{"paused", "resumed", "held", "released", "cancelled"} {
		if !seen[want] {
			t.Errorf("there is no event %s", want)
		}
	}
}

func TestApproval(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	definition := write(t, `
name: shipped
tasks:
  ask: { type: approval, spec: { message: 'ship it?' } }
  ship: { type: shell, spec: { command: 'true' }, dependsOn: [ask] }
`)
	yes, no := s.submit(t, definition), s.submit(t, definition)
	for _, id := range []string{yes, no} {
		eventually(t, "the run waits for approval", func() bool { return s.peek(t, id).State == "pending_approval" })
	}
	watch := start(t, "runs", "watch", yes, "--gateway", s.gateway)
	watch.expect(&watch.stderr, "runs approve "+yes+" ask")
	do(t, s.gateway, 0, "runs", "approve", yes, "ask", "--reason", "looks good")
	if code := watch.wait(); code != 0 {
		t.Errorf("the approved run ends with %d", code)
	}
	do(t, s.gateway, 0, "runs", "reject", no, "ask")
	do(t, s.gateway, 1, "runs", "watch", no)
	if tasks := s.get(t, no).Tasks; tasks["ask"].State != "rejected" || tasks["ship"].State != "skipped" {
		t.Errorf("after a rejection the tasks are %+v", tasks)
	}
	if _, stderr := do(t, s.gateway, 1, "runs", "approve", yes, "ask"); stderr == "" {
		t.Error("an approval that is too late says nothing")
	}
}

// TestRunsAgain lets a run fail, fixes the cause and continues it, repeats a part of it, and starts it anew with
// another input.
func TestRunsAgain(t *testing.T) {
	t.Parallel()
	s, dir := startDev(t), t.TempDir()
	id := s.submit(t, write(t, fmt.Sprintf(`
name: again
inputs: { who: { default: nobody } }
tasks:
  first: { type: shell, spec: { command: 'echo ${{ workflow.input.who }} >> %[1]s/first' } }
  second: { type: shell, spec: { command: 'echo >> %[1]s/second; test -e %[1]s/mended' }, dependsOn: [first], retry: { maxRetries: 0 } }
  third: { type: shell, spec: { command: 'echo >> %[1]s/third' }, dependsOn: [second] }
`, dir)))
	do(t, s.gateway, 1, "runs", "watch", id)
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
	do(t, s.gateway, 0, "runs", "retry", id, "--watch")
	ran(1, 2, 1)
	if _, stderr := do(t, s.gateway, 1, "runs", "retry", id); !strings.Contains(stderr, "--from") {
		t.Errorf("retrying a run that completed says\n%s", stderr)
	}
	do(t, s.gateway, 0, "runs", "retry", id, "--from", "second", "--watch")
	ran(1, 3, 2)
	if _, stderr := do(t, s.gateway, 2, "runs", "retry", id, "--from", "secnd"); !strings.Contains(stderr, "second") {
		t.Errorf("an unknown task is told as\n%s", stderr)
	}
	stdout, _ := do(t, s.gateway, 0, "runs", "rerun", id, "--input", "who=42", "--watch")
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
	s := startDev(t)
	file := write(t, `
name: stored
inputs: { version: { required: true } }
tasks:
  say: { type: shell, spec: { command: 'echo ${{ workflow.input.version }}' } }
  never: { type: shell, spec: { command: 'true' }, dependsOn: [say], constraints: { nodeLabels: [quantum] }, when: all_failed }
`)
	do(t, s.gateway, 0, "workflows", "put", file)
	if _, stderr := do(t, s.gateway, 1, "workflows", "put", file); !strings.Contains(stderr, "--replace") {
		t.Errorf("storing it twice says\n%s", stderr)
	}
	do(t, s.gateway, 0, "workflows", "put", file, "--replace")
	eventually(t, "it is listed", func() bool {
		names := ask[list[struct{ Name string }]](t, s.gateway, "workflows", "list")
		return len(names.Items) == 1 && names.Items[0].Name == "stored"
	})
	stdout, _ := do(t, s.gateway, 0, "workflows", "get", "stored")
	if code, _, stderr := run(t, "validate", write(t, stdout)); code != 0 {
		t.Errorf("what is stored is no definition: %s", stderr)
	}

	plan, _ := do(t, s.gateway, 0, "submit", "--workflow", "stored", "--dry-run", "--input", "version=1.10")
	for _, want := range []string{"LEVEL", "1.10", "quantum"} {
		if !strings.Contains(plan, want) {
			t.Errorf("the plan lacks %q:\n%s", want, plan)
		}
	}
	if runs := ask[list[struct{ ID string }]](t, s.gateway, "runs", "list"); len(runs.Items) != 0 {
		t.Errorf("a dry run has started %v", runs.Items)
	}
	if _, stderr := do(t, s.gateway, 2, "submit", "--workflow", "stored"); !strings.Contains(stderr, "version") {
		t.Errorf("a missing input is told as\n%s", stderr)
	}
	args := []string{"submit", "--workflow", "stored", "--idempotency-key", "k", "--input", "version=1.10"}
	first, _ := do(t, s.gateway, 0, args...)
	second, stderr := do(t, s.gateway, 0, append(args, "--watch")...)
	if first != second || !strings.Contains(stderr, "earlier request") {
		t.Errorf("two requests under a key start %q and %q: %s", first, second, stderr)
	}
	if say := s.get(t, strings.TrimSpace(first)).Tasks["say"]; say.Result.Stdout != "1.10\n" {
		t.Errorf("say printed %q", say.Result.Stdout)
	}
	if _, stderr := do(t, s.gateway, 1, append(args[:len(args)-1:len(args)-1], "version=2")...); !strings.Contains(stderr, "key") {
		t.Errorf("another input under the key says\n%s", stderr)
	}
	do(t, s.gateway, 0, "workflows", "delete", "stored")
	do(t, s.gateway, 2, "submit", "--workflow", "stored")
}
