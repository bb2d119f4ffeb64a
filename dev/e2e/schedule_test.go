package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"switchyard/workflows/names"
)

// scheduled triggers the schedule of a stored workflow, and returns the id of the run that it starts.
func (s *devStack) scheduled(t *testing.T, workflow string) (id string) {
	t.Helper()
	before := s.listed(t, workflow)
	out, err := outputOf(t, tool(t, "temporal"), "schedule", "trigger", "--address", s.temporal,
		"--schedule-id", names.StoredWorkflowID(workflow), "--overlap-policy", "AllowAll")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	eventually(t, "the schedule has started a run", func() bool {
		for _, run := range s.listed(t, workflow) {
			if !slices.Contains(before, run) {
				id = run
				return true
			}
		}
		return false
	})
	return id
}

// listed returns the ids of the runs of a workflow.
func (s *devStack) listed(t *testing.T, workflow string) (ids []string) {
	t.Helper()
	type item struct{ ID string }
	for _, run := range ask[list[item]](t, s.gateway, "runs", "list", "--workflow", workflow).Items {
		ids = append(ids, run.ID)
	}
	return ids
}

// Each command on a run takes the id that a schedule makes, which has colons in it.
func TestCommandsOnScheduledRun(t *testing.T) {
	t.Parallel()
	s, dir := startDev(t), t.TempDir()
	do(t, s.gateway, 0, "workflows", "put", write(t, fmt.Sprintf(`
name: nightly
defaults: { resources: { cores: 0 } }
tasks:
  first: { type: shell, spec: { command: 'echo one; %[1]s' } }
  kept: { type: shell, dependsOn: [first], spec: { command: 'true' } }
  each: { type: shell, parallel: 3, spec: { command: 'echo $SWITCHYARD_INDEX' } }
  endless: { type: shell, continueOnError: true, spec: { command: 'sleep 600' } }
  other: { type: shell, continueOnError: true, spec: { command: 'sleep 600' } }
  yes: { type: approval, spec: { message: 'now?' } }
  no: { type: approval, continueOnError: true, spec: { message: 'all of it?' } }
  broken: { type: shell, retry: { maxRetries: 1, backoffMs: 10 }, spec: { command: 'test -e %[2]s/mended' } }
`, gate(dir, "first"), dir)))
	id := s.scheduled(t, "nightly")
	if !strings.Contains(id, ":") {
		t.Fatalf("the id %s is an easy one", id)
	}
	for _, task := range []string{"first", "endless", "other"} {
		s.awaitTask(t, id, task, "running")
	}
	for task, state := range map[string]string{"each": "completed", "yes": "paused", "no": "paused"} {
		s.awaitTask(t, id, task, state)
	}
	for _, command := range []struct{ args, prints string }{
		{"get " + id, "nightly"},
		{"get " + id + " first", "running"},
		{"get " + id + " --definition", "nightly"},
		{"instances " + id + " each", "completed"},
		{"events " + id, "first"},
		{"explain " + id + " kept", "first"},
		{"graph " + id, "kept"},
		{"timeline " + id, "first"},
		{"pause " + id, ""},
		{"resume " + id, ""},
		{"hold " + id + " kept", ""},
		{"release " + id + " kept", ""},
		{"approve " + id + " yes", ""},
		{"reject " + id + " no", ""},
		{"kill " + id + " endless", ""},
		{"cancel " + id + " other", ""},
	} {
		stdout, _ := do(t, s.gateway, 0, append([]string{"runs"}, strings.Fields(command.args)...)...)
		if !strings.Contains(stdout, command.prints) {
			t.Errorf("runs %s prints\n%s\nwithout %q", command.args, stdout, command.prints)
		}
	}
	open(t, dir, "first")
	do(t, s.gateway, 1, "runs", "watch", id)
	if stdout, _ := do(t, s.gateway, 0, "runs", "logs", id, "first"); !strings.Contains(stdout, "one") {
		t.Errorf("the log of first is %q", stdout)
	}
	open(t, dir, "mended")
	eventually(t, "its dead letter is listed", func() bool {
		stdout, _ := do(t, s.gateway, 0, "dlq", "list")
		return strings.Contains(stdout, id)
	})
	do(t, s.gateway, 0, "dlq", "retry", id, "broken")
	do(t, s.gateway, 0, "runs", "watch", id)
	do(t, s.gateway, 0, "runs", "retry", id, "--from", "other")
	s.awaitTask(t, id, "other", "running")
	do(t, s.gateway, 0, "runs", "cancel", id)
	do(t, s.gateway, 1, "runs", "watch", id)
	again, _ := do(t, s.gateway, 0, "runs", "rerun", id)
	do(t, s.gateway, 0, "runs", "cancel", "--force", strings.TrimSpace(again))
}
