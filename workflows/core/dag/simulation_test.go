package dag_test

import (
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// A simulation plays the world around a state. It carries out decisions in random order and checks the invariants of the state
// after every step.
type simulation struct {
	t    *rapid.T
	def  *v1.Definition
	seed uint64
	g    *dag.Graph
	s    *dag.State
	ref  *reference // receives the same events one by one; or nil

	// Decisions without an answer so far; by claim if they have one.
	evaluate map[int]bool
	expand   map[int]bool
	place    map[int]int32
	backoff  map[int]int32

	sent  []dag.Event // every event delivered so far
	end   *dag.End
	final map[int]dag.Record
	stops map[int]bool
	halts map[int]bool
	again bool // the changes come from a requeue
}

func simulate(t *rapid.T, def *v1.Definition, seed uint64, ref *reference) *simulation {
	g, err := dag.NewGraph(def, mentions(def))
	if err != nil {
		t.Fatal(err)
	}
	m := &simulation{
		t: t, def: def, seed: seed, g: g, s: dag.New(g), ref: ref,
		evaluate: map[int]bool{}, expand: map[int]bool{}, place: map[int]int32{}, backoff: map[int]int32{},
		final: map[int]dag.Record{}, stops: map[int]bool{}, halts: map[int]bool{},
	}
	before := m.s.Records()
	m.take(before, m.s.Start())
	return m
}

// apply delivers events, and checks and records the decisions.
func (m *simulation) apply(events ...dag.Event) {
	before := m.s.Records()
	d := m.s.Apply(events...)
	for _, e := range events {
		switch e := e.(type) {
		case dag.Evaluated:
			delete(m.evaluate, e.Task)
		case dag.Expanded:
			delete(m.expand, e.Task)
		case dag.BackoffOver:
			if m.backoff[e.Task] == e.Claim {
				delete(m.backoff, e.Task)
			}
		case dag.Retry:
			for i, rec := range m.final { // a Retry may undo these ends
				task := i == e.Task || i == m.s.Group(e.Task) && e.Task < m.s.Len()
				if task && e.Task < len(before) && before[e.Task].State == "dead_letter" || rec.State == "skipped" {
					delete(m.final, i)
				}
			}
			m.again = true
		}
		if m.ref != nil {
			m.ref.step(m.name(e), e)
		}
	}
	m.sent = append(m.sent, events...)
	m.take(before, d)
	m.again = false
}

// name returns the name of the task or instance that an event is about, or "" if there is none.
func (m *simulation) name(e dag.Event) string {
	i := -1
	switch e := e.(type) {
	case dag.Evaluated:
		i = e.Task
	case dag.Expanded:
		i = e.Task
	case dag.Placed:
		i = e.Task
	case dag.Reused:
		i = e.Task
	case dag.Running:
		i = e.Task
	case dag.GaveUp:
		i = e.Task
	case dag.BackoffOver:
		i = e.Task
	case dag.Ended:
		i = e.Task
	case dag.Retry:
		i = e.Task
	case dag.CancelTask:
		i = e.Task
	case dag.Kill:
		i = e.Task
	case dag.Expire:
		i = e.Task
	}
	if i < 0 || i >= m.s.Len() {
		return ""
	}
	return m.s.Name(i)
}

// take records decisions and checks them. before holds the records from before the events.
func (m *simulation) take(before []dag.Record, d dag.Decisions) {
	m.takeChanges(before, d.Changed)
	known := len(before)
	for i := known; i < m.s.Len(); i++ { // the initial record of each new instance
		before = append(before, dag.Record{State: "pending", Claim: before[m.s.Group(i)].Claim})
	}
	for _, asked := range []map[int]bool{m.evaluate, m.expand} {
		for i := range asked { // obsolete if an ancestor was requeued
			if m.unsettled(i) {
				delete(asked, i)
			}
		}
	}
	for _, i := range d.Evaluate {
		m.check(!m.evaluate[i] && (m.again || before[i].State == "pending"), "task %d is evaluated twice", i)
		m.check(!m.unsettled(i), "task %d starts before an ancestor has ended", i)
		m.evaluate[i] = true
	}
	for _, i := range d.Expand {
		m.check(!m.expand[i] && (m.again || before[i].State == "pending"), "task %d is expanded twice", i)
		m.check(!m.unsettled(i), "task %d starts before an ancestor has ended", i)
		m.expand[i] = true
	}
	for _, i := range d.Withdraw {
		_, open := m.place[i]
		m.check(open && before[i].State == "queued", "task %d is withdrawn but was not requested", i)
	}
	for i, claim := range m.place { // answered, withdrawn or wrongly forgotten
		rec := m.s.Task(i)
		if rec.Claim == claim && rec.State == "queued" && !rec.Backoff {
			continue
		}
		answered := slices.ContainsFunc(m.sent, func(e dag.Event) bool {
			switch e := e.(type) {
			case dag.Placed:
				return e.Task == i && e.Claim == claim
			case dag.GaveUp:
				return e.Task == i && e.Claim == claim
			case dag.Reused:
				return e.Task == i && e.Claim == claim
			}
			return false
		})
		m.check(answered || slices.Contains(d.Withdraw, i), "the request for task %d is forgotten: %+v", i, rec)
		delete(m.place, i)
	}
	for _, i := range d.Place {
		_, open := m.place[i]
		m.check(!open, "task %d is requested twice", i)
		m.check(m.s.Task(i).Claim == before[i].Claim+1, "claim of task %d goes from %d to %d", i, before[i].Claim, m.s.Task(i).Claim)
		began := wordIn(before[i].State, "queued assigned running") // before something above was requeued
		if g := m.s.Group(i); g >= 0 {
			began = began || before[g].State == "running"
		}
		if !began {
			m.check(!m.unsettled(i), "task %d starts before an ancestor has ended", i)
		}
		m.place[i] = m.s.Task(i).Claim
	}
	for _, b := range d.Backoff {
		_, open := m.backoff[b.Task]
		m.check(!open, "task %d backs off twice", b.Task)
		n := m.s.Task(b.Task).Attempt - 1
		m.check(b.Delay == time.Second<<n, "back-off %d of task %d is %v", n, b.Task, b.Delay)
		m.backoff[b.Task] = m.s.Task(b.Task).Claim
	}
	for i, rec := range m.s.Records() {
		if !rec.Backoff || m.backoff[i] != rec.Claim {
			delete(m.backoff, i)
		}
		if rec.State != "pending" {
			delete(m.evaluate, i)
			delete(m.expand, i)
		}
	}
	for _, i := range d.Stop {
		m.check((m.s.Cancelled() || m.s.Task(i).PendingEnd) && !m.stops[i], "task %d is stopped for nothing or twice", i)
		m.stops[i] = true
	}
	for _, i := range d.Halt {
		_, _, remote, _ := m.s.Expansion(i)
		m.check(remote && m.s.FirstFailure() >= 0 && !m.halts[i], "task %d is halted for nothing or twice", i)
		m.halts[i] = true
	}
	m.check(d.End == nil || m.end == nil, "the run ends twice")
	if d.End != nil {
		m.end = d.End
	}
	m.checkState()
}

// takeChanges checks that the list of changes is complete and that ends are final.
func (m *simulation) takeChanges(before []dag.Record, changed []int) {
	var want []int
	for i, rec := range m.s.Records() {
		if i >= len(before) || rec != before[i] {
			want = append(want, i)
		}
		old, ended := m.final[i]
		m.check(!ended || rec == old, "task %d had ended as %+v and is now %+v", i, old, rec)
		if v1.IsTaskTerminal(rec.State) {
			m.final[i] = rec
		}
	}
	if m.again { // a requeued task may have ended as before
		changed = slices.DeleteFunc(slices.Clone(changed), func(i int) bool { return i < len(before) && m.s.Task(i) == before[i] })
	}
	m.check(slices.Equal(want, changed), "changed are %v, said are %v", want, changed)
}

// unsettled reports whether any ancestor of a task or instance has not ended.
func (m *simulation) unsettled(i int) bool {
	return slices.ContainsFunc(ancestors(m.def, m.s.Name(i)), func(a string) bool {
		k, _ := m.g.Index(a)
		return !v1.IsTaskTerminal(m.s.Task(k).State)
	})
}

// checkState compares the state with the reference and with the pending decisions.
func (m *simulation) checkState() {
	counts := make(map[string]int)
	evaluate, expand, place, backoff := map[int]bool{}, map[int]bool{}, map[int]int32{}, map[int]int32{}
	over, groups := true, 0
	for i, rec := range m.s.Records() {
		counts[rec.State]++
		if _, _, _, ok := m.s.Expansion(i); ok && rec.State == "running" {
			groups++
		}
		over = over && v1.IsTaskTerminal(rec.State)
		at, found := m.s.Index(m.s.Name(i))
		m.check(found && at == i, "task %s is at %d, not at %d", m.s.Name(i), at, i)
		switch {
		case rec.Backoff:
			backoff[i] = rec.Claim
		case rec.State == "queued":
			place[i] = rec.Claim
		}
		if m.ref == nil {
			continue
		}
		r := m.ref.tasks[m.s.Name(i)]
		m.check(r != nil, "by the reference there is no %s", m.s.Name(i))
		same := r.state == rec.State && r.reason == rec.Reason && r.attempt == rec.Attempt && r.claim == rec.Claim &&
			r.backoff == rec.Backoff && r.exit == rec.ExitCode && (r.doom != "") == rec.PendingEnd
		m.check(same, "task %s is %+v, by the reference %+v", m.s.Name(i), rec, *r)
		m.check(r.ends <= 1, "by the reference task %d ended twice", i)
		if r.remote && r.state == "running" && !m.s.Cancelled() {
			allowed := m.ref.runAllows(m.s.Name(i))
			m.check(allowed || m.halts[i], "task %s is not halted", m.s.Name(i))
			m.halts[i] = m.halts[i] && !allowed
		}
		switch r.asked {
		case "condition":
			evaluate[i] = true
		case "expand":
			expand[i] = true
		}
	}
	m.check(maps.Equal(place, m.place), "requested are %v, owed are %v", m.place, place)
	m.check(maps.Equal(backoff, m.backoff), "back-offs are %v, owed are %v", m.backoff, backoff)
	m.check(m.ref == nil || maps.Equal(evaluate, m.evaluate), "asked are %v, owed are %v", m.evaluate, evaluate)
	m.check(m.ref == nil || maps.Equal(expand, m.expand), "to be expanded are %v, owed are %v", m.expand, expand)
	m.check(m.ref == nil || len(m.ref.tasks) == m.s.Len(), "there are %d records, the reference has others", m.s.Len())
	m.check(maps.Equal(counts, m.s.Counts()), "counts are %v, want %v", m.s.Counts(), counts)
	m.check(m.s.RunningGroups() == groups, "%d groups run, want %d", m.s.RunningGroups(), groups)
	m.check(over == (m.end != nil), "all ended: %v, end: %+v", over, m.end)
}

func (m *simulation) dispatched() []int {
	var tasks []int
	for i, rec := range m.s.Records() {
		if _, count := m.s.Instances(i); count == 0 && (rec.State == "assigned" || rec.State == "running") {
			tasks = append(tasks, i)
		}
	}
	return tasks
}

func (m *simulation) deadLetters() []int {
	var tasks []int
	for i, rec := range m.s.Records() {
		if rec.State == "dead_letter" {
			tasks = append(tasks, i)
		}
	}
	return tasks
}

// answer draws a pending decision and returns events that answer it, possibly with more events of the same attempt. It returns
// none if nothing is pending.
func (m *simulation) answer(end func(task int) dag.Ended) []dag.Event {
	dispatched := m.dispatched()
	evaluate := slices.Sorted(maps.Keys(m.evaluate))
	expand := slices.Sorted(maps.Keys(m.expand))
	place := slices.Sorted(maps.Keys(m.place))
	backoff := slices.Sorted(maps.Keys(m.backoff))
	n := len(dispatched) + len(evaluate) + len(expand) + len(place) + len(backoff)
	if n == 0 {
		return nil
	}
	k := rapid.IntRange(0, n-1).Draw(m.t, "what")
	if k < len(dispatched) {
		i := dispatched[k]
		e := end(i)
		e.Task, e.Claim = i, m.s.Task(i).Claim
		if chance(m.t, 30, "running") {
			return []dag.Event{dag.Running{Task: i, Claim: e.Claim}, e}
		}
		return []dag.Event{e}
	}
	if k -= len(dispatched); k < len(evaluate) {
		i := evaluate[k]
		e := oracle(m.seed, m.g.Name(i), ancestors(m.def, m.g.Name(i)), func(a string) string {
			at, _ := m.g.Index(a)
			return m.s.Task(at).State
		})
		e.Task = i
		return []dag.Event{e}
	}
	if k -= len(evaluate); k < len(expand) {
		i := expand[k]
		e := fanOut(m.seed, m.g.Name(i))
		e.Task = i
		return []dag.Event{e}
	}
	if k -= len(expand); k < len(place) {
		i := place[k]
		if m.ref != nil && chance(m.t, 5, "reused") {
			return []dag.Event{dag.Reused{Task: i, Claim: m.place[i], ExitCode: 0}}
		}
		return []dag.Event{dag.Placed{Task: i, Claim: m.place[i], Node: "n"}}
	}
	i := backoff[k-len(place)]
	return []dag.Event{dag.BackoffOver{Task: i, Claim: m.backoff[i]}}
}

func (m *simulation) check(ok bool, format string, args ...any) {
	if !ok {
		m.t.Helper()
		m.t.Fatalf(format, args...)
	}
}
