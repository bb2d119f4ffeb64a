package dag_test

import (
	"fmt"
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

// Under "continue" and without a cancel, the order of events does not matter: the outcome follows from the definition and from
// how the attempts end. The test computes it task by task, without events.
func TestOutcomeDoesNotDependOnOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		def := drawDefinition(t, "", "continue")
		drawFanOut(t, def)
		w := worked{
			def:      def,
			seed:     rapid.Uint64().Draw(t, "seed"),
			attempts: make(map[string][]dag.Ended),
			done:     make(map[string][2]string),
		}
		m := simulate(t, def, w.seed, nil)
		for i := range m.g.Len() {
			for _, name := range append(w.instances(m.g.Name(i)), m.g.Name(i)) {
				for range rapid.IntRange(0, 5).Draw(t, "attempts") {
					w.attempts[name] = append(w.attempts[name], drawEnd(t))
				}
			}
		}
		for m.end == nil {
			events := m.answer(func(i int) dag.Ended {
				if ends := w.attempts[m.s.Name(i)]; int(m.s.Task(i).Claim) <= len(ends) {
					return ends[m.s.Task(i).Claim-1]
				}
				return dag.Ended{State: "completed"}
			})
			if len(events) == 0 {
				t.Fatalf("the run hangs: %+v", m.s.Records())
			}
			m.apply(events...)
		}
		run, cancelled, succeeded := "completed", m.s.Count("cancelled") > 0, false
		for i, rec := range m.s.Records() {
			name := m.s.Name(i)
			if task := m.s.Group(i); task >= 0 {
				// The ends of instances that maxFailures stops depend on the order.
				state := w.ran(name, m.s.Definition(i))
				if m.s.Task(task).State == "completed" && state != rec.State {
					t.Fatalf("instance %s is %+v, should be %s", name, rec, state)
				}
				continue
			}
			state, effect := w.task(name)
			if state != rec.State {
				t.Fatalf("task %s is %+v, should be %s", name, rec, state)
			}
			if effect == "failure" && state != "skipped" && state != "cancelled" {
				run = "failed"
			}
			instances := m.s.InstanceCounts(i)
			succeeded = succeeded || (state == "completed" || state == "stopped") && (len(instances) == 0 || instances["completed"]+instances["stopped"] > 0)
		}
		if run == "completed" && cancelled && !succeeded {
			run = "cancelled"
		}
		if m.end.State != run {
			t.Fatalf("the run ended %+v, should be %s", m.end, run)
		}
	})
}

// worked computes how tasks end.
type worked struct {
	def      *v1.Definition
	seed     uint64
	attempts map[string][]dag.Ended // by claim; further ones complete
	done     map[string][2]string
}

// task returns how a task ends and what that end counts as.
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
	case def.When != "" && !refHolds(def.When, parents):
		return "skipped", "neutral"
	case hasBrokenGuard(def, func(parent string) string { _, e := w.task(parent); return e }):
		return "skipped", "failure"
	case def.Condition != "":
		answer := oracle(w.seed, name, ancestors(w.def, name), func(a string) string {
			s, _ := w.task(a)
			return s
		})
		switch {
		case answer.Err != "" && def.ContinueOnError:
			return "failed", "success"
		case answer.Err != "":
			return "failed", "failure"
		case !answer.Value:
			return "skipped", "neutral"
		}
	case def.When != "":
	case def.OnFailure == "run" || len(def.DependsOn) == 0:
	case parents["failure"] > 0:
		return "skipped", "failure"
	case parents["success"] == 0:
		return "skipped", "neutral"
	}
	switch state = w.started(name, def); {
	case state == "completed" || state == "stopped" || def.ContinueOnError:
		return state, "success"
	default:
		return state, "failure"
	}
}

// instances returns the names of the instances that a task has in this state.
func (w worked) instances(name string) []string {
	e := fanOut(w.seed, name)
	if w.def.Tasks[name].Parallel == nil || e.Err != "" || e.Partitioned {
		return nil
	}
	var list []string
	for k := range e.Count {
		list = append(list, fmt.Sprintf("%s[%d]", name, e.From+k))
	}
	return list
}

// started returns how a task that has started ends.
func (w worked) started(name string, def *v1.TaskDefinition) string {
	e := fanOut(w.seed, name)
	switch {
	case def.Parallel == nil:
		return w.ran(name, def)
	case e.Err != "":
		return "failed"
	case e.Partitioned:
		if len(w.attempts[name]) == 0 {
			return "completed"
		}
		if state := w.attempts[name][0].State; state != "moved" {
			return state
		}
		return "failed"
	}
	failed := int32(0)
	for _, one := range w.instances(name) {
		if state := w.ran(one, def); state != "completed" && state != "stopped" {
			failed++
		}
	}
	if failed > def.MaxFailures {
		return "failed"
	}
	return "completed"
}

// ran returns how the last attempt of a task or instance ends.
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
