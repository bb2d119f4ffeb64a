package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchyard/dev/processes"
)

// followBackUpGuide runs the commands of the guide to back-ups that have a reason not to be run elsewhere. env holds further
// variables.
func followBackUpGuide(t *testing.T, dir, reason string, env ...string) (stdout string) {
	t.Helper()
	c := exec.CommandContext(t.Context(), "sh", "-ec", quoted(t, "docs/operations/back-up.md", "```sh not-run: "+reason+"\n(.*?)```"))
	c.Dir, c.Env = dir, append(processes.CleanEnv(), env...)
	text, err := c.Output()
	if err != nil {
		failed, _ := errors.AsType[*exec.ExitError](err)
		t.Fatalf("%v: %s%s", err, text, failed.Stderr)
	}
	return string(text)
}

// TestGuideOfBackUp copies a stack and restores it with the commands of the guide, which replace what happened after the copy. A
// task that ran when the copy was made starts again.
func TestGuideOfBackUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	guided := func(reason string) { t.Helper(); followBackUpGuide(t, dir, reason) }
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

// TestGuideOfMoving moves a fleet to another one, with other keys, by the commands of the guide. There a token logs in, a task gets
// a secret, and a paused schedule is paused.
func TestGuideOfMoving(t *testing.T) {
	t.Parallel()
	old, next := startLocked(t), startLocked(t)
	ann := filepath.Join(old.dir, "ann")
	old.token(t, ann, "--name", "ann", "--role", "operator")
	const value = "hunter2-of-the-move"
	old.do(t, 0, "secrets", "set", "password", "--from-file", write(t, value))
	old.do(t, 0, "workflows", "put", write(t, `
name: nightly
schedule: { cron: "@yearly" }
tasks: { a: { type: shell, secretEnv: { PASSWORD: "store:password" }, spec: { command: 'test "$PASSWORD" = hunter2-of-"the-move"' } } }
`))
	old.do(t, 0, "schedules", "pause", "nightly", "--reason", "fire")
	home := t.TempDir()
	env := []string{"HOME=" + home, "OLD=" + old.Gateway, "NEW=" + next.Gateway, "PATH=" + filepath.Dir(binary) + ":" + os.Getenv("PATH")}
	for _, s := range []*lockedStack{old, next} {
		login := startWith(t, env[:1], "login", "--gateway", s.Gateway, "--token-file", s.admin)
		if code := login.Wait(); code != 0 {
			t.Fatalf("login exits with %d: %s", code, login.Stderr)
		}
	}
	plan := "created    secret password\ncreated    token ann/"
	stdout := followBackUpGuide(t, home, "needs two fleets", env...)
	if strings.Count(stdout, plan) != 2 || strings.Count(stdout, "\ncreated    workflow nightly\n") != 2 { // one of them by the dry run
		t.Errorf("the imports print\n%s", stdout)
	}
	if stdout = followBackUpGuide(t, home, "needs two fleets", env...); strings.Contains(stdout, "created") || strings.Count(stdout, "unchanged  workflow nightly\n") != 2 {
		t.Errorf("the second ones print\n%s", stdout)
	}
	file, err := os.ReadFile(filepath.Join(home, "fleet.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	token, err := os.ReadFile(ann)
	if err != nil {
		t.Fatal(err)
	}
	newLeaks(t, value, string(token)[strings.LastIndex(string(token), "_"):]).search("the file", string(file))

	as := []string{"--gateway", next.Gateway, "--token-file", ann}
	code, stdout, stderr := run(t, append([]string{"submit", "--workflow", "nightly", "--watch"}, as...)...)
	if code != 0 {
		t.Errorf("a run of ann's exits with %d: %s%s", code, stdout, stderr)
	}
	if stdout, _ := next.do(t, 0, "schedules", "get", "nightly"); !strings.Contains(stdout, "paused by admin: fire") {
		t.Errorf("the schedule is\n%s", stdout)
	}
	if stdout, _ := next.do(t, 0, "audit", "--what", "ExportService/ImportItem"); strings.Count(stdout, "ImportItem") != 3 {
		t.Errorf("the audit has\n%s", stdout)
	}
	if code, _, stderr := run(t, append([]string{"export", "--skip", "secret"}, as...)...); code != 4 || !strings.Contains(stderr, "needs the role admin") {
		t.Errorf("an operator's export exits with %d: %s", code, stderr)
	}
}
