package dag_test

import (
	"testing"

	"pgregory.net/rapid"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
)

// Whatever happens in whatever order, the state is that of the reference
// interpreter after every step, and the run comes to its end.
func TestAgreesWithReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := drawDefinition(t, "", "continue", "halt", "halt")
		seed := rapid.Uint64().Draw(t, "seed")
		cancelAt := -1
		if chance(t, 25, "cancels") {
			cancelAt = rapid.IntRange(0, 20).Draw(t, "cancelAt")
		}
		m := simulate(t, def, seed, newReference(def, seed))
		for step := 0; m.end == nil; step++ {
			var events []dag.Event
			for range rapid.IntRange(1, 3).Draw(t, "batch") {
				events = append(events, m.answer(func(int) dag.Ended { return drawEnd(t) })...)
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
			if step == cancelAt {
				at := rapid.IntRange(0, len(events)).Draw(t, "at")
				events = append(events[:at:at], append([]dag.Event{dag.Cancel{}}, events[at:]...)...)
			}
			m.apply(events...)
			if dead := m.deadLetters(); m.end == nil && len(dead) > 0 && chance(t, 25, "retry") {
				m.apply(dag.Retry{Task: rapid.SampledFrom(dead).Draw(t, "put back")})
			}
			if chance(t, 10, "restore") {
				m.restore()
			}
		}
		if want := m.ref.state(); m.end.State != want {
			t.Fatalf("the run ended %+v, by the reference %s", m.end, want)
		}
		if m.end.State == "failed" && m.g.Name(m.end.Task) != m.ref.firstFailure {
			t.Fatalf("the run blames %s, the reference %s", m.g.Name(m.end.Task), m.ref.firstFailure)
		}
		m.apply(m.sent...)
		m.apply(dag.Cancel{})
		m.restore()
	})
}

// noise draws an event that nobody asked for: one that was sent before, or one that
// is made up. It may happen to fit.
func noise(m *simulation, t *rapid.T) dag.Event {
	if len(m.sent) > 0 && chance(t, 60, "again") {
		e := rapid.SampledFrom(m.sent).Draw(t, "doubled")
		switch e.(type) {
		case dag.Cancel, dag.Retry:
		default:
			return e
		}
	}
	i := rapid.IntRange(0, m.g.Len()-1).Draw(t, "task")
	if state := m.s.Task(i).State; dag.Terminal(state) && state != "dead_letter" && chance(t, 10, "no dead letter") {
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

// Under "continue" and without a cancel the order in which things happen does not
// matter: the ends are those that follow from the definition and from how the
// attempts end, worked out here task by task without any events.
func TestOutcomeDoesNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := drawDefinition(t, "", "continue")
		w := worked{
			def:      def,
			seed:     rapid.Uint64().Draw(t, "seed"),
			attempts: make(map[string][]dag.Ended),
			done:     make(map[string][2]string),
		}
		m := simulate(t, def, w.seed, nil)
		for i := range m.g.Len() {
			for range rapid.IntRange(0, 5).Draw(t, "attempts") {
				w.attempts[m.g.Name(i)] = append(w.attempts[m.g.Name(i)], drawEnd(t))
			}
		}
		for m.end == nil {
			events := m.answer(func(i int) dag.Ended {
				if ends := w.attempts[m.g.Name(i)]; int(m.s.Task(i).Claim) <= len(ends) {
					return ends[m.s.Task(i).Claim-1]
				}
				return dag.Ended{State: "completed"}
			})
			if len(events) == 0 {
				t.Fatalf("the run hangs: %+v", m.s.Records())
			}
			m.apply(events...)
		}
		run := "completed"
		for i, rec := range m.s.Records() {
			name := m.g.Name(i)
			state, effect := w.task(name)
			if state != rec.State {
				t.Fatalf("task %s is %+v, should be %s", name, rec, state)
			}
			if effect == "failure" && state != "skipped" && state != "cancelled" {
				run = "failed"
			}
		}
		if m.end.State != run {
			t.Fatalf("the run ended %+v, should be %s", m.end, run)
		}
	})
}

// worked works out how tasks end.
type worked struct {
	def      *v1.Definition
	seed     uint64
	attempts map[string][]dag.Ended // by claim; then completed
	done     map[string][2]string
}

// task returns how a task ends and what that counts as.
func (w worked) task(name string) (state, effect string) {
	if done, ok := w.done[name]; ok {
		return done[0], done[1]
	}
	defer func() { w.done[name] = [2]string{state, effect} }()
	def := w.def.Tasks[name]
	parents := make(map[string]int)
	for _, parent := range def.DependsOn {
		_, e := w.task(parent)
		parents[e]++
	}
	switch {
	case def.Condition != "":
		value, _ := oracle(w.seed, name, ancestors(w.def, name), func(a string) string {
			s, _ := w.task(a)
			return s
		})
		if !value {
			return "skipped", "neutral"
		}
	case def.OnFailure == "run" || len(def.DependsOn) == 0:
	case parents["failure"] > 0:
		return "skipped", "failure"
	case parents["success"] == 0:
		return "skipped", "neutral"
	}
	switch state = w.ran(name, def); {
	case state == "completed" || state == "stopped" || def.ContinueOnError:
		return state, "success"
	default:
		return state, "failure"
	}
}

// ran returns how a task ends that has started.
func (w worked) ran(name string, def *v1.TaskDefinition) string {
	retries := refRetries(def)
	left := retries
	for _, e := range w.attempts[name] {
		switch {
		case e.State == "moved":
		case !wordIn(e.State, "failed killed_oom lost") || e.NoRetry || retries == 0:
			return e.State
		case left == 0:
			return "dead_letter"
		default:
			left--
		}
	}
	return "completed"
}
