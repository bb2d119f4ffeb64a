package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchyard/dev/processes"
)

// TestGuideOfBackUp copies a stack and restores it with the commands of the guide, which replace what happened after the copy. A
// task that ran when the copy was made starts again.
func TestGuideOfBackUp(t *testing.T) {
	t.Parallel()
	const guide = "docs/operations/back-up.md"
	dir := t.TempDir()
	guided := func(reason string) {
		t.Helper()
		c := exec.CommandContext(t.Context(), "sh", "-ec", quoted(t, guide, "```sh not-run: "+reason+"\n(.*?)```"))
		c.Dir = dir
		if text, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	stop := func(s *processes.Stack) {
		t.Helper()
		s.Signal(syscall.SIGTERM)
		if code := s.Wait(); code != 0 {
			t.Fatalf("dev exits with %d after SIGTERM: %s", code, s.Stderr)
		}
	}
	db := filepath.Join(dir, "yard.db")
	const hello = "name: hello\ntasks: { greet: { type: shell, spec: { command: echo hello } } }\n"
	s := startDev(t, "--db", db)
	before := s.Submit(t, hello)
	s.End(t, before)
	opened := s.Submit(t, "name: open\ntasks: { wait: { type: shell, retry: { backoffMs: 10 }, spec: { command: '"+gate(dir, "gate")+"' } } }\n")
	s.AwaitTask(t, opened, "wait", "running")
	do(t, s.Gateway, 0, "secrets", "set", "password", "--from-file", write(t, "1234"))
	stop(s)
	guided("needs a fleet that has been stopped")

	s = startDev(t, "--db", db)
	after := s.Submit(t, hello)
	s.End(t, after)
	do(t, s.Gateway, 0, "secrets", "delete", "password")
	stop(s)
	guided("replaces a fleet that has been stopped")

	s = startDev(t, "--db", db)
	if text, _ := do(t, s.Gateway, 0, "runs", "logs", before); text != "hello\n" {
		t.Errorf("the log of a run that ended before the copy is %q", text)
	}
	if list, _ := do(t, s.Gateway, 0, "runs", "list"); !strings.Contains(list, before) || strings.Contains(list, after) {
		t.Errorf("the runs are\n%s", list)
	}
	if list, _ := do(t, s.Gateway, 0, "secrets", "list"); !strings.Contains(list, "password") {
		t.Errorf("the secrets are\n%s", list)
	}
	open(t, dir, "gate")
	if d := s.End(t, opened); d.State != "completed" {
		t.Errorf("the run that was open is %s: %s", d.State, d.Error)
	}
}
