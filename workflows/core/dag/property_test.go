package dag_test

import (
	"testing"

	"pgregory.net/rapid"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// Whatever happens in whatever order, the state matches the reference interpreter after every step, and the run ends.
func TestAgreesWithReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := drawDefinition(t, "", "continue", "halt", "halt")
		drawFanOut(t, def)
		seed := rapid.Uint64().Draw(t, "seed")
		m := simulate(t, def, seed, newReference(def))
		generation(t, m)
		for range rapid.IntRange(0, 2).Draw(t, "generations") {
			if again, ok := drawAgain(t, m); ok {
				m.reopen(again)
				generation(t, m)
			}
		}
	})
}

// drawAgain draws a rerun of a run that has ended. ok is false if there is nothing to rerun.
func drawAgain(t *rapid.T, m *simulation) (again dag.Rerun, ok bool) {
	kind := rapid.IntRange(1, 7).Draw(t, "again") // a set of the three
	if dead := m.deadLetters(); kind&1 != 0 && len(dead) > 0 {
		for _, i := range rapid.SliceOfN(rapid.SampledFrom(dead), 1, 3).Draw(t, "put back") {
			again.Tasks = append(again.Tasks, m.s.Name(i))
		}
	}
	again.Failed = kind&2 != 0
	if kind&4 != 0 {
		again.From = rapid.SliceOfN(rapid.SampledFrom(m.ref.order), 1, 2).Draw(t, "from")
	}
	return again, again.Failed || len(again.Tasks)+len(again.From) > 0
}

// interruption draws an action of a person or a clock on a run.
func interruption(t *rapid.T, m *simulation) dag.Event {
	task := rapid.IntRange(0, m.s.Len()-1).Draw(t, "interrupted")
	switch rapid.IntRange(0, 9).Draw(t, "interruption") {
	case 0:
		return dag.Cancel{}
	case 1:
		return dag.Abort{State: rapid.SampledFrom([]string{"failed", "cancelled", "rejected"}).Draw(t, "abort"), Reason: "deadline"}
	case 2, 3, 4:
		return dag.CancelTask{Task: task}
	case 5, 6:
		return dag.Kill{Task: task}
	}
	return dag.Expire{Task: task}
}

// generation runs to the end of the run and checks that nothing changes afterwards.
func generation(t *rapid.T, m *simulation) {
	interrupts := rapid.SampledFrom([]int{0, 0, 3, 10}).Draw(t, "interrupts") // per hundred steps
	gloomy := chance(t, 30, "gloomy")
	for m.end == nil {
		var events []dag.Event
		for range rapid.IntRange(1, 3).Draw(t, "batch") {
			events = append(events, m.answer(func(int) dag.Ended {
				if gloomy && chance(t, 50, "fails") {
					return deadNow()
				}
				return drawEnd(t)
			})...)
		}
		if len(events) == 0 {
			t.Fatalf("the run hangs: %+v", m.s.Records())
		}
		for range rapid.IntRange(0, 2).Draw(t, "noise") {
			if e := noise(m, t); e != nil {
				at := rapid.IntRange(0, len(events)).Draw(t, "at")
				events = append(events[:at:at], append([]dag.Event{e}, events[at:]...)...)
			}
		}
		if chance(t, interrupts, "interrupted") {
			at := rapid.IntRange(0, len(events)).Draw(t, "at")
			events = append(events[:at:at], append([]dag.Event{interruption(t, m)}, events[at:]...)...)
		}
		m.apply(events...)
		if dead := m.deadLetters(); m.end == nil && len(dead) > 0 && chance(t, 35, "retry") {
			m.apply(dag.Retry{Task: rapid.SampledFrom(dead).Draw(t, "put back")})
		}
		if chance(t, 10, "restore") {
			m.restore()
		}
	}
	if want := m.ref.state(); m.end.State != want {
		t.Fatalf("the run ended %+v, by the reference %s", m.end, want)
	}
	if m.end.Reason == "task_failed" && m.g.Name(m.end.Task) != m.ref.firstFailure {
		t.Fatalf("the run blames %s, the reference %s", m.g.Name(m.end.Task), m.ref.firstFailure)
	}
	m.apply(m.sent...)
	m.apply(dag.Cancel{}, dag.Expire{Task: m.s.Len() - 1}, dag.CancelTask{}, dag.Abort{State: "failed"})
	m.restore()
}

// noise draws an unsolicited event: a duplicate of an earlier event or a made-up one. It may happen to fit.
func noise(m *simulation, t *rapid.T) dag.Event {
	if len(m.sent) > 0 && chance(t, 60, "again") {
		e := rapid.SampledFrom(m.sent).Draw(t, "doubled")
		switch e.(type) {
		case dag.Cancel, dag.Abort, dag.CancelTask, dag.Kill, dag.Expire, dag.Retry:
		default:
			return e
		}
	}
	i := rapid.IntRange(0, m.s.Len()-1).Draw(t, "task")
	if state := m.s.Task(i).State; v1.IsTaskTerminal(state) && state != "dead_letter" && chance(t, 10, "no dead letter") {
		return dag.Retry{Task: i}
	}
	claim := m.s.Task(i).Claim - rapid.Int32Range(0, 1).Draw(t, "behind")
	switch rapid.IntRange(0, 4).Draw(t, "kind") {
	case 0:
		return dag.Running{Task: i, Claim: claim}
	case 1:
		return dag.GaveUp{Task: i, Claim: claim, Error: "no node"}
	case 2:
		e := drawEnd(t)
		e.Task, e.Claim = i, claim
		return e
	case 3:
		return dag.BackoffOver{Task: i, Claim: claim}
	}
	return dag.Placed{Task: i, Claim: claim, Node: "n"}
}
