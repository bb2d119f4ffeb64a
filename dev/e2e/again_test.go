package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestSubmitAgain submits under an idempotency key, repeats the run, and starts others like it.
func TestSubmitAgain(t *testing.T) {
	t.Parallel()
	s := startDev(t)
	dir := t.TempDir()
	definition := write(t, fmt.Sprintf(`
name: once
tasks:
  first: { type: shell, spec: { command: 'echo x >> %[1]s/first' } }
  second: { type: shell, dependsOn: [first], retry: { maxRetries: 0 }, spec: { command: 'test -e %[1]s/open' } }
  third: { type: shell, dependsOn: [second], spec: { command: 'true' } }
`, dir))
	submit := []string{"submit", definition, "--idempotency-key", "k"}
	stdout, _ := do(t, s.gateway, 0, submit...)
	id := strings.TrimSpace(stdout)
	again, _ := do(t, s.gateway, 0, submit...)
	if strings.TrimSpace(again) != id {
		t.Errorf("the same request started %s and %s", id, again)
	}
	do(t, s.gateway, 1, "runs", "watch", id)
	if again, _ := do(t, s.gateway, 0, submit...); strings.TrimSpace(again) != id {
		t.Errorf("after the end the same request started %s", again)
	}
	if err := os.WriteFile(filepath.Join(dir, "open"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	do(t, s.gateway, 0, "runs", "retry", id)
	do(t, s.gateway, 0, "runs", "watch", id)
	times := func() int {
		text, err := os.ReadFile(filepath.Join(dir, "first"))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "x")
	}
	if d := s.get(t, id); d.State != "completed" || times() != 1 {
		t.Errorf("it is %s, and first ran %d times", d.State, times())
	}
	do(t, s.gateway, 0, "runs", "retry", id, "--from", "first")
	do(t, s.gateway, 0, "runs", "watch", id)
	if n := times(); n != 2 {
		t.Errorf("first ran %d times", n)
	}
	fresh, _ := do(t, s.gateway, 0, "runs", "rerun", id)
	fresh = strings.TrimSpace(fresh)
	if fresh == id {
		t.Error("a rerun has the id of the run")
	}
	do(t, s.gateway, 0, "runs", "watch", fresh)
	if n := times(); n != 3 {
		t.Errorf("first ran %d times", n)
	}
}

// TestStoredWorkflow checks that a stored definition survives a restart and runs by name.
func TestStoredWorkflow(t *testing.T) {
	t.Parallel()
	db := filepath.Join(t.TempDir(), "state.db")
	s := startDev(t, "--db", db)
	definition := write(t, "name: kept\ntasks:\n  greet: { type: shell, spec: { command: echo hello } }\n")
	do(t, s.gateway, 0, "workflows", "put", definition)
	do(t, s.gateway, 2, "submit", "--workflow", "kpet")
	s.signal(syscall.SIGINT)
	s.wait()
	s = startDev(t, "--db", db)
	stdout, _ := do(t, s.gateway, 0, "submit", "--workflow", "kept")
	id := strings.TrimSpace(stdout)
	do(t, s.gateway, 0, "runs", "watch", id)
	if d := s.get(t, id); d.State != "completed" {
		t.Errorf("it is %s", d.State)
	}
	do(t, s.gateway, 0, "workflows", "delete", "kept")
}
