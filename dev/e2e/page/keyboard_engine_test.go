//go:build engines

package page

import (
	"fmt"
	"testing"

	"switchyard/dev/browsertest"
	"switchyard/dev/processes"
)

// act presses the button of an action by keyboard, and confirms the dialog if there is one. fields selects among
// buttons of the same verb by names and values of hidden fields.
func act(t *testing.T, tab *browsertest.Tab, verb, reason string, fields ...string) {
	t.Helper()
	form := fmt.Sprintf("form[action='/ui/actions/%s']", verb)
	for i := 0; i < len(fields); i += 2 {
		form += fmt.Sprintf(":has(input[name='%s'][value='%s'])", fields[i], fields[i+1])
	}
	tab.TabTo(form + " button")
	asks := browsertest.Eval[bool](tab, fmt.Sprintf("(f => !!(f.dataset.ask || f.dataset.reason))(document.querySelector(%q))", form))
	tab.Press("Enter")
	if asks {
		tab.WaitTrue("document.getElementById('ask').open")
		if reason != "" {
			tab.TabTo("#ask input[name=reason]")
			tab.Type(reason)
		}
		tab.TabTo("#ask-yes")
		tab.Press("Enter")
	}
}

// isPaused reports whether a schedule is paused.
func (s *stack) isPaused(t *testing.T, name string) bool {
	t.Helper()
	var answer struct{ Schedule struct{ Paused bool } }
	s.Call(t, "ScheduleService/GetSchedule", map[string]any{"name": name}, &answer)
	return answer.Schedule.Paused
}

// testKeyboardSteersASchedule controls a schedule by keyboard alone. Escape closes the confirmation dialog, and the
// action then does not happen.
func testKeyboardSteersASchedule(t *testing.T, s *stack) {
	tab := browsertest.Open(t, s.Gateway+"/ui/schedules/nightly")
	tab.TabTo("form[action='/ui/actions/pause-schedule'] button")
	tab.Press("Enter")
	tab.WaitTrue("document.getElementById('ask').open")
	tab.CheckAccessibility(t)
	tab.Press("Escape")
	tab.WaitTrue("!document.getElementById('ask').open")
	tab.WaitTrue("document.activeElement.textContent == 'Pause'")
	if s.isPaused(t, "nightly") {
		t.Error("the schedule is paused")
	}
	act(t, tab, "pause-schedule", "holidays")
	tab.WaitText("#notice", "paused")
	processes.Await(t, "the schedule is paused", func() bool { return s.isPaused(t, "nightly") })
	awaitLive(t, tab, "main", "holidays")
	act(t, tab, "resume-schedule", "")
	processes.Await(t, "the schedule is resumed", func() bool { return !s.isPaused(t, "nightly") })
	tab.WaitTrue("!!document.querySelector(\"form[action='/ui/actions/pause-schedule']\")")
	act(t, tab, "trigger-schedule", "")
	tab.WaitTrue("location.pathname.startsWith('/ui/runs/nightly-')")
	tab.Check(t)
}

// testKeyboardStartsAWorkflow starts a stored workflow with inputs by keyboard alone.
func testKeyboardStartsAWorkflow(t *testing.T, s *stack) {
	tab := browsertest.Open(t, s.Gateway+"/ui/workflows/nightly")
	tab.TabTo("select")
	tab.Press("l") // selects the option "live"
	tab.TabTo("input[type=number]")
	tab.Press("Control+a")
	tab.Type("7")
	tab.TabTo("input[type=checkbox]")
	tab.Press("Space")
	tab.TabTo("form.inputs button[value=run], form.inputs button:not([value])")
	tab.Press("Enter")
	tab.WaitTrue("location.pathname.startsWith('/ui/runs/nightly-')")
	id := browsertest.Eval[string](tab, "location.pathname.split('/')[3]")
	s.AwaitRun(t, id, "completed")
	var answer struct {
		Run struct{ Input map[string]any }
	}
	s.Call(t, "RunService/GetRun", map[string]any{"id": id}, &answer)
	if in := answer.Run.Input; in["stage"] != "live" || fmt.Sprint(in["copies"]) != "7" || in["dry"] != false {
		t.Errorf("the input is %v", in)
	}
	tab.Check(t)
}

// testKeyboardDecidesOnApprovals approves and rejects tasks by keyboard alone.
func testKeyboardDecidesOnApprovals(t *testing.T, s *stack) {
	good, bad := s.Submit(t, approvalDefinition), s.Submit(t, approvalDefinition)
	s.AwaitTask(t, good, "ask", "paused")
	s.AwaitTask(t, bad, "ask", "paused")
	tab := browsertest.Open(t, s.Gateway+"/ui/approvals")
	tab.WaitText("#approvals", good)
	tab.WaitText("#approvals", bad)
	act(t, tab, "approve-task", "looks fine", "run", good)
	tab.WaitText("#notice", "approved")
	s.AwaitRun(t, good, "completed")
	act(t, tab, "reject-task", "too early", "run", bad)
	tab.WaitText("#notice", "rejected")
	s.AwaitRun(t, bad, "failed")
	tab.WaitText("#approvals-end", "Nothing waits")
	tab.Check(t)
}

// testKeyboardRetriesADeadLetter retries and drops dead letters by keyboard alone.
func testKeyboardRetriesADeadLetter(t *testing.T, s *stack) {
	gate := t.TempDir() + "/gate"
	id := s.Submit(t, formatted(mendableDefinition, gate))
	s.AwaitRun(t, id, "failed")
	tab := browsertest.Open(t, s.Gateway+"/ui/dead-letters")
	tab.WaitText("#dead-letters", "doomed")
	openGate(t, gate)
	act(t, tab, "retry-dead-letter", "", "run", id)
	s.AwaitRun(t, id, "completed")
	tab.WaitText("#dead-letters-end", "no dead letters")
	tab.Check(t)
}

// mendableDefinition is a run whose task fails until a file exists.
const mendableDefinition = `
name: mendable
tasks:
  doomed: { type: shell, spec: { command: 'test -e %s' }, retry: { maxRetries: 1, backoffMs: 1 } }
`

// testKeyboardSteersARun pauses, resumes, cancels and retries a run by keyboard alone.
func testKeyboardSteersARun(t *testing.T, s *stack) {
	gate := t.TempDir() + "/gate"
	id := s.Submit(t, formatted(gatedDefinition, gate))
	s.AwaitTask(t, id, "hold", "running")
	tab := browsertest.Open(t, s.Gateway+"/ui/runs/"+id)
	act(t, tab, "pause-run", "lunch")
	s.AwaitRun(t, id, "paused")
	awaitLive(t, tab, "#run-head", "paused")
	act(t, tab, "resume-run", "")
	s.AwaitRun(t, id, "running")
	awaitLive(t, tab, "#run-head", "running")
	act(t, tab, "cancel-run", "wrong one")
	s.AwaitRun(t, id, "cancelled")
	awaitLive(t, tab, "#run-head", "cancelled")
	openGate(t, gate)
	act(t, tab, "retry-run", "")
	s.AwaitRun(t, id, "completed")
	awaitLive(t, tab, "#run-head", "completed")
	tab.Check(t)
}

// testKeyboardDrainsANode drains and undrains a node by keyboard alone.
func testKeyboardDrainsANode(t *testing.T, s *stack) {
	tab := browsertest.Open(t, s.Gateway+"/ui/nodes/local-2")
	tab.WaitText("main", "Drain")
	act(t, tab, "drain-node", "")
	processes.Await(t, "the node drains", func() bool { return s.nodeState(t, "local-2") == "draining" })
	awaitLive(t, tab, "#node-head", "draining")
	tab.WaitTrue("!!document.querySelector(\"form[action='/ui/actions/undrain-node']\")")
	act(t, tab, "undrain-node", "")
	processes.Await(t, "the node is active", func() bool { return s.nodeState(t, "local-2") == "active" })
	awaitLive(t, tab, "#node-head", "active")
	tab.Check(t)
}

// nodeState returns the state of a node.
func (s *stack) nodeState(t *testing.T, name string) string {
	t.Helper()
	var answer struct{ Node struct{ State string } }
	s.Call(t, "NodeService/GetNode", map[string]any{"name": name}, &answer)
	return answer.Node.State
}

// testKeyboardSteersATask pauses, resumes and kills a task by keyboard alone.
func testKeyboardSteersATask(t *testing.T, s *stack) {
	id := s.Submit(t, formatted(gatedDefinition, t.TempDir()+"/gate"))
	s.AwaitTask(t, id, "hold", "running")
	tab := browsertest.Open(t, s.Gateway+"/ui/runs/"+id+"/tasks/hold")
	act(t, tab, "pause-task", "a look")
	s.AwaitTask(t, id, "hold", "paused")
	awaitLive(t, tab, "#task-head", "paused")
	act(t, tab, "resume-task", "")
	s.AwaitTask(t, id, "hold", "running")
	awaitLive(t, tab, "#task-head", "running")
	act(t, tab, "kill-task", "enough")
	s.AwaitTask(t, id, "hold", "killed")
	awaitLive(t, tab, "#task-head", "killed")
	tab.Check(t)
}
