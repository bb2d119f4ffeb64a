package dag_test

import (
	"maps"
	"slices"
	"time"

	"pgregory.net/rapid"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
)

// A simulation plays the world around a state. It carries out decisions in random
// order and holds the state to what must be true after every step.
type simulation struct {
	t    *rapid.T
	def  *v1.Definition
	seed uint64
	g    *dag.Graph
	s    *dag.State
	ref  *reference // sees the same events one by one; nil: none

	// What has been decided and not been answered; by claim where there is one.
	evaluate map[int]bool
	place    map[int]int32
	backoff  map[int]int32

	sent  []dag.Event // everything that has ever been delivered
	end   *dag.End
	final map[int]dag.Record
	stops map[int]bool
}

func simulate(t *rapid.T, def *v1.Definition, seed uint64, ref *reference) *simulation {
	g, err := dag.NewGraph(def)
	if err != nil {
		t.Fatal(err)
	}
	m := &simulation{
		t: t, def: def, seed: seed, g: g, s: dag.New(g), ref: ref,
		evaluate: map[int]bool{}, place: map[int]int32{}, backoff: map[int]int32{},
		final: map[int]dag.Record{}, stops: map[int]bool{},
	}
	before := m.s.Records()
	m.take(before, m.s.Start())
	return m
}

// apply delivers events and checks and notes what follows.
func (m *simulation) apply(events ...dag.Event) {
	before := m.s.Records()
	d := m.s.Apply(events...)
	for _, e := range events {
		switch e := e.(type) {
		case dag.Evaluated:
			delete(m.evaluate, e.Task)
		case dag.BackoffOver:
			if m.backoff[e.Task] == e.Claim {
				delete(m.backoff, e.Task)
			}
		case dag.Retry:
			for i, rec := range m.final { // not for ever after all
				if i == e.Task && rec.State == "dead_letter" || rec.State == "skipped" {
					delete(m.final, i)
				}
			}
		}
		if m.ref != nil {
			m.ref.step(m.name(e), e)
		}
	}
	m.sent = append(m.sent, events...)
	m.take(before, d)
}

func (m *simulation) name(e dag.Event) string {
	switch e := e.(type) {
	case dag.Evaluated:
		return m.g.Name(e.Task)
	case dag.Placed:
		return m.g.Name(e.Task)
	case dag.Running:
		return m.g.Name(e.Task)
	case dag.GaveUp:
		return m.g.Name(e.Task)
	case dag.BackoffOver:
		return m.g.Name(e.Task)
	case dag.Ended:
		return m.g.Name(e.Task)
	case dag.Retry:
		return m.g.Name(e.Task)
	}
	return ""
}

// take notes decisions; before is what was known before them.
func (m *simulation) take(before []dag.Record, d dag.Decisions) {
	m.takeChanges(before, d.Changed)
	for i := range m.evaluate { // of no use any more where an ancestor was put back
		if slices.ContainsFunc(ancestors(m.def, m.g.Name(i)), func(a string) bool {
			k, _ := m.g.Index(a)
			return !dag.Terminal(m.s.Task(k).State)
		}) {
			delete(m.evaluate, i)
		}
	}
	for _, i := range d.Evaluate {
		m.check(!m.evaluate[i] && wordIn(before[i].State, "pending skipped"), "task %d is evaluated twice", i)
		m.checkMayStart(i)
		m.evaluate[i] = true
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
		if !wordIn(before[i].State, "queued assigned running") { // these began before something above was put back
			m.checkMayStart(i)
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
		}
	}
	for _, i := range d.Stop {
		m.check(m.s.Cancelled() && !m.stops[i], "task %d is stopped for nothing or twice", i)
		m.stops[i] = true
	}
	m.check(d.End == nil || m.end == nil, "the run ends twice")
	if d.End != nil {
		m.end = d.End
	}
	m.checkState()
}

// takeChanges checks that the list of changes is right and that ends are for ever.
func (m *simulation) takeChanges(before []dag.Record, changed []int) {
	var want []int
	for i, rec := range m.s.Records() {
		if rec != before[i] {
			want = append(want, i)
		}
		old, ended := m.final[i]
		m.check(!ended || rec == old, "task %d had ended as %+v and is now %+v", i, old, rec)
		if dag.Terminal(rec.State) {
			m.final[i] = rec
		}
	}
	m.check(slices.Equal(want, changed), "changed are %v, said are %v", want, changed)
}

// checkMayStart checks that what is above a task has ended.
func (m *simulation) checkMayStart(i int) {
	for _, a := range ancestors(m.def, m.g.Name(i)) {
		k, _ := m.g.Index(a)
		m.check(dag.Terminal(m.s.Task(k).State), "task %d starts before its ancestor %s has ended", i, a)
	}
}

// checkState compares the state with the reference and with what is owed.
func (m *simulation) checkState() {
	counts := make(map[string]int)
	evaluate, place, backoff := map[int]bool{}, map[int]int32{}, map[int]int32{}
	over := true
	for i, rec := range m.s.Records() {
		counts[rec.State]++
		over = over && dag.Terminal(rec.State)
		switch {
		case rec.Backoff:
			backoff[i] = rec.Claim
		case rec.State == "queued":
			place[i] = rec.Claim
		}
		if m.ref == nil {
			continue
		}
		r := m.ref.tasks[m.g.Name(i)]
		same := r.state == rec.State && r.reason == rec.Reason && r.attempt == rec.Attempt && r.claim == rec.Claim && r.backoff == rec.Backoff
		m.check(same, "task %s is %+v, by the reference %+v", m.g.Name(i), rec, *r)
		m.check(r.ends <= 1, "by the reference task %d ended twice", i)
		if r.asked {
			evaluate[i] = true
		}
	}
	m.check(maps.Equal(place, m.place), "requested are %v, owed are %v", m.place, place)
	m.check(maps.Equal(backoff, m.backoff), "back-offs are %v, owed are %v", m.backoff, backoff)
	m.check(m.ref == nil || maps.Equal(evaluate, m.evaluate), "asked are %v, owed are %v", m.evaluate, evaluate)
	m.check(maps.Equal(counts, m.s.Counts()), "counts are %v, want %v", m.s.Counts(), counts)
	m.check(over == (m.end != nil), "all ended: %v, end: %+v", over, m.end)
}

// restore goes on with a new state, which must owe exactly what is open.
func (m *simulation) restore() {
	m.s = dag.Restore(m.g, m.s.Records(), dag.WithCancelled(m.s.Cancelled()), dag.WithFirstFailure(m.s.FirstFailure()))
	before := m.s.Records()
	d := m.s.Start()
	m.evaluate, m.end = map[int]bool{}, nil
	m.check(slices.Equal(d.Place, slices.Sorted(maps.Keys(m.place))), "restored, %v are requested, open are %v", d.Place, m.place)
	for _, i := range d.Place {
		m.check(m.s.Task(i).Claim == m.place[i], "restored, claim of %d is %d, was %d", i, m.s.Task(i).Claim, m.place[i])
	}
	d.Place = nil
	if m.s.Cancelled() {
		m.check(slices.Equal(d.Stop, m.dispatched()), "restored, %v are stopped, dispatched are %v", d.Stop, m.dispatched())
	}
	m.backoff, m.stops = map[int]int32{}, map[int]bool{}
	m.take(before, d)
}

func (m *simulation) dispatched() []int {
	var tasks []int
	for i, rec := range m.s.Records() {
		if rec.State == "assigned" || rec.State == "running" {
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

// answer draws something that is owed and returns events that answer it, possibly
// with more of the same attempt; none when nothing is owed.
func (m *simulation) answer(end func(task int) dag.Ended) []dag.Event {
	dispatched := m.dispatched()
	evaluate := slices.Sorted(maps.Keys(m.evaluate))
	place := slices.Sorted(maps.Keys(m.place))
	backoff := slices.Sorted(maps.Keys(m.backoff))
	n := len(dispatched) + len(evaluate) + len(place) + len(backoff)
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
		value, err := oracle(m.seed, m.g.Name(i), ancestors(m.def, m.g.Name(i)), func(a string) string {
			at, _ := m.g.Index(a)
			return m.s.Task(at).State
		})
		return []dag.Event{dag.Evaluated{Task: i, Value: value, Err: err}}
	}
	if k -= len(evaluate); k < len(place) {
		i := place[k]
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
