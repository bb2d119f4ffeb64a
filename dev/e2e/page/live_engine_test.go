//go:build engines

package page

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchyard/dev/browsertest"
)

// liveBound bounds the delay of the page behind the API. The delay is less than 1 s on an idle machine, and tests print
// it. The longer a view takes to read its data, the less often it reads them.
const liveBound = 2 * time.Minute

// awaitLive waits until a page shows a text that the API already shows, and prints how long that took.
func awaitLive(t *testing.T, tab *browsertest.Tab, selector, text string) {
	t.Helper()
	took := tab.WaitTextFor(liveBound, selector, text)
	t.Logf("the page shows %q %v after the API", text, took.Round(time.Millisecond))
}

// gatedDefinition is a run that lasts until a file exists.
const gatedDefinition = `
name: gated
tasks:
  hold: { type: shell, spec: { command: 'echo waiting; while ! test -e %s; do sleep 0.1; done; echo finished' }, resources: { cores: 0 } }
`

// testListOfRunsFollowsRuns checks that a list of runs shows a new run and its end without a reload.
func testListOfRunsFollowsRuns(t *testing.T, s *stack) {
	gate := t.TempDir() + "/gate"
	tab := browsertest.Open(t, s.Gateway+"/ui/runs")
	tab.WaitTrue("document.body.dataset.live == 'live'")
	id := s.Submit(t, formatted(gatedDefinition, gate))
	s.AwaitRun(t, id, "running")
	row := "#run-" + id
	awaitLive(t, tab, row, "running")
	openGate(t, gate)
	s.AwaitRun(t, id, "completed")
	awaitLive(t, tab, row, "completed")
	tab.Check(t)
}

// testPageOfARunFollowsItsTasks checks that the graph, timeline and counts of a run's page follow the states of its
// tasks.
func testPageOfARunFollowsItsTasks(t *testing.T, s *stack) {
	gate := t.TempDir() + "/gate"
	id := s.Submit(t, formatted(gatedDefinition, gate))
	s.AwaitTask(t, id, "hold", "running")
	tab := browsertest.Open(t, s.Gateway+"/ui/runs/"+id)
	tab.WaitText("#run-counts", "1 running")
	tab.WaitTrue("document.body.dataset.live == 'live'")
	openGate(t, gate)
	s.AwaitTask(t, id, "hold", "completed")
	awaitLive(t, tab, "#run-counts", "1 completed")
	tab.Check(t)
}

// testQueueFollowsTasksThatWait checks that the views of nodes and of the queue are live.
func testQueueFollowsTasksThatWait(t *testing.T, s *stack) {
	tab := browsertest.Open(t, s.Gateway+"/ui/queue")
	tab.WaitTrue("document.body.dataset.live == 'live'")
	id := s.Submit(t, waitingDefinition)
	s.AwaitTask(t, id, "train", "queued")
	awaitLive(t, tab, "#queue-node", "train")
	s.cli(t, "runs", "cancel", id)
	s.AwaitRun(t, id, "cancelled")
	awaitLive(t, tab, "#queue-node-end", "No task waits")
	tab.Check(t)
}

// testLogOfATaskIsLive checks that the page of a task shows log lines as they arrive, in colour and without escape
// sequences.
func testLogOfATaskIsLive(t *testing.T, s *stack) {
	gates := t.TempDir()
	id := s.Submit(t, formatted(coloursDefinition, gates))
	s.AwaitTask(t, id, "paint", "running")
	tab := browsertest.Open(t, s.Gateway+"/ui/runs/"+id+"/tasks/paint")
	tab.WaitText("#log", "bold green")
	began := tab.Count("#log li")
	tab.WaitText("#log", "tick")
	tab.WaitTrue(fmt.Sprintf("document.querySelectorAll('#log li').length > %d", began+3))
	colour := browsertest.Eval[string](tab, "getComputedStyle([...document.querySelectorAll('#log span')].findLast(e => e.textContent == 'red')).color")
	plain := browsertest.Eval[string](tab, "getComputedStyle(document.querySelector('#log li')).color")
	if colour == plain {
		t.Errorf("red has the colour %s of other text", colour)
	}
	if text := tab.Text("#log"); strings.ContainsAny(text, "\x1b\x07") || strings.Contains(text, "[31m") {
		t.Errorf("the log shows escape sequences: %q", text)
	}
	openGate(t, gates+"/colours")
	s.AwaitRun(t, id, "completed")
	awaitLive(t, tab, "#task-head", "completed")
	tab.Check(t)
}
