//go:build engines

package page

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"switchyard/dev/processes"
)

// world holds the runs on a test's stack: one of every kind, by ID.
type world struct {
	*stack
	gates string // folder of the gate files that let tasks end

	completed, failed, retrying, waiting, approval, deadLetter, fanOut, paused, cancelled, colours string
}

// The definitions of the world.
const (
	completedDefinition = `
name: completed
description: Two tasks, one after the other
tasks:
  fetch: { type: shell, spec: { command: 'echo "fetched=yes" > "$SWITCHYARD_OUTPUT"; echo fetched it' } }
  use: { type: shell, dependsOn: [fetch], spec: { command: 'echo used it' } }
`
	failedDefinition = `
name: failed
tasks:
  compile: { type: shell, spec: { command: 'echo compiling; echo "main.c:7: error: missing semicolon" >&2; exit 3' }, retry: { maxRetries: 0 } }
  link: { type: shell, dependsOn: [compile], spec: { command: 'echo never' } }
`
	retryingDefinition = `
name: retrying
tasks:
  flaky: { type: shell, spec: { command: 'echo "no luck" >&2; exit 1' }, retry: { maxRetries: 5, backoffMs: 3600000, maxBackoffMs: 3600000 } }
`
	waitingDefinition = `
name: waiting
tasks:
  train: { type: shell, constraints: { targetNode: no-such-node }, spec: { command: 'echo never' } }
`
	approvalDefinition = `
name: approval
inputs: { version: { default: "1.9" } }
tasks:
  ask: { type: approval, spec: { message: 'Deploy ${{ workflow.input.version }}?', roles: [operator] } }
  deploy: { type: shell, dependsOn: [ask], spec: { command: 'echo deployed' } }
`
	deadLetterDefinition = `
name: dead-letter
tasks:
  doomed: { type: shell, spec: { command: 'echo "the disk is full" >&2; exit 28' }, retry: { maxRetries: 1, backoffMs: 1 } }
`
	fanOutDefinition = `
name: fan-out
tasks:
  each:
    type: shell
    parallel: 50
    concurrency: 4
    maxFailures: 50
    spec: { command: 'test $((SWITCHYARD_INDEX %% 10)) != 3 || exit 1; test "$SWITCHYARD_INDEX" -lt 20 || while ! test -e %s/fan-out; do sleep 0.2; done' }
    resources: { cores: 0 }
    retry: { maxRetries: 0 }
`
	pausedDefinition = `
name: paused
tasks:
  first: { type: shell, spec: { command: 'while ! test -e %s/paused; do sleep 0.2; done' }, resources: { cores: 0 } }
  second: { type: shell, dependsOn: [first], spec: { command: 'echo second' } }
`
	cancelledDefinition = `
name: cancelled
tasks:
  endless: { type: shell, spec: { command: 'while true; do sleep 0.2; done' }, resources: { cores: 0 } }
`
	coloursDefinition = `
name: colours
tasks:
  paint:
    type: shell
    resources: { cores: 0 }
    spec:
      command: |
        n=0
        while ! test -e %s/colours; do
          printf '\033[31mred\033[0m \033[1;32mbold green\033[0m \033[38;5;208morange\033[0m plain\n'
          n=$((n+1))
          printf '\033[36mtick %%s\033[0m\n' "$n"
          sleep 1
        done
`
	storedDefinition = `
name: nightly
description: What a night has to do
inputs:
  stage: { type: string, enum: [test, live], default: test, description: Where it goes }
  copies: { type: integer, default: 2 }
  dry: { type: boolean, default: true }
schedule: { cron: "0 2 * * MON-FRI", timezone: Europe/Berlin }
tasks:
  work: { type: shell, spec: { command: 'echo "stage ${{ workflow.input.stage }}"' } }
`
)

// newWorld starts a stack and all runs of a world, and waits until each run is in its intended state.
func newWorld(t *testing.T, args ...string) *world {
	t.Helper()
	w := &world{stack: startStack(t, args...), gates: t.TempDir()}
	gated := func(definition string) string { return fmt.Sprintf(definition, w.gates) }
	w.completed = w.Submit(t, completedDefinition)
	w.failed = w.Submit(t, failedDefinition)
	w.retrying = w.Submit(t, retryingDefinition)
	w.waiting = w.Submit(t, waitingDefinition)
	w.approval = w.Submit(t, approvalDefinition)
	w.deadLetter = w.Submit(t, deadLetterDefinition)
	w.fanOut = w.Submit(t, gated(fanOutDefinition))
	w.paused = w.Submit(t, gated(pausedDefinition))
	w.cancelled = w.Submit(t, cancelledDefinition)
	w.colours = w.cli(t, "submit", processes.WriteFile(t, "definition.yaml", gated(coloursDefinition)), "--batch", "paintings")
	w.put(t, storedDefinition)
	w.AwaitTask(t, w.paused, "first", "running")
	w.cli(t, "runs", "pause", w.paused, "--reason", "the building burns")
	w.AwaitTask(t, w.cancelled, "endless", "running")
	w.cli(t, "runs", "cancel", w.cancelled, "--reason", "nobody needs it")
	w.AwaitRun(t, w.completed, "completed")
	w.AwaitRun(t, w.failed, "failed")
	w.AwaitRun(t, w.cancelled, "cancelled")
	w.AwaitRun(t, w.deadLetter, "failed")
	w.AwaitTask(t, w.retrying, "flaky", "queued")
	w.AwaitTask(t, w.waiting, "train", "queued")
	w.AwaitTask(t, w.approval, "ask", "paused")
	w.AwaitTask(t, w.colours, "paint", "running")
	w.awaitLog(t, w.colours, "paint", "orange")
	processes.Await(t, "the fan-out has ended instances", func() bool { return w.instances(t, w.fanOut, "each", "completed") >= 18 })
	return w
}

// open lets the tasks that wait for a gate end.
func (w *world) open(t *testing.T, gate string) {
	t.Helper()
	openGate(t, filepath.Join(w.gates, gate))
}

// instances returns the number of instances of a task in a state.
func (s *stack) instances(t *testing.T, run, task, state string) int {
	t.Helper()
	var answer struct{ Items []any }
	s.Call(t, "RunService/ListInstances", map[string]any{"id": run, "task": task, "state": state, "pageSize": 100}, &answer)
	return len(answer.Items)
}

// openGate creates the file that a task waits for.
func openGate(t *testing.T, path string) {
	t.Helper()
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

// formatted inserts the path of a gate into a definition.
func formatted(definition, path string) string { return fmt.Sprintf(definition, path) }
