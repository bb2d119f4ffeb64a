//go:build engines

package page

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"switchyard/dev/processes"
)

// stack is a running `switchyard dev` of two nodes, local-1 and local-2.
type stack struct{ *processes.Stack }

// start starts the binary with additional environment variables. The process ends with the test.
func start(t *testing.T, env []string, args ...string) *processes.Program {
	t.Helper()
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Env = repository, env
	return processes.StartForTest(t, cmd)
}

func startStack(t *testing.T, args ...string) *stack {
	t.Helper()
	args = append([]string{"dev", "--port", "0", "--gateway-port", "0", "--ui-port", "0", "--nodes", "2", "--max-parallel", "8"}, args...)
	return &stack{processes.StackOf(start(t, nil, args...))}
}

// cli runs a command against the gateway and returns its output.
func (s *stack) cli(t *testing.T, args ...string) string {
	t.Helper()
	env := []string{"SWITCHYARD_GATEWAY=" + s.Gateway}
	if s.Token != "" {
		env = append(env, "SWITCHYARD_TOKEN="+s.Token)
	}
	p := start(t, env, args...)
	if code := p.Wait(); code != 0 {
		t.Fatalf("switchyard %s exits with %d: %s", strings.Join(args, " "), code, p.Stderr)
	}
	return strings.TrimSpace(p.Stdout.String())
}

// put stores a workflow.
func (s *stack) put(t *testing.T, definition string) {
	t.Helper()
	s.cli(t, "workflows", "put", processes.WriteFile(t, "definition.yaml", definition))
}

// awaitLog waits until the log of a task contains a text. Views without updates show only what is stored before.
func (s *stack) awaitLog(t *testing.T, id, task, text string) {
	t.Helper()
	processes.Await(t, fmt.Sprintf("the log of %s of %s has %q", task, id, text), func() bool { return strings.Contains(s.cli(t, "runs", "logs", id, task), text) })
}
