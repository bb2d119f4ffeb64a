package dag_test

import (
	"maps"
	"slices"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/core/dag"
)

// saved saves the state and returns what Restore then continues from, which is all of the state.
func (m *simulation) saved() ([]dag.Record, []dag.RestoreOption) {
	left := &historyv1.RunState{Tasks: map[string]*historyv1.TaskState{}}
	m.s.Save(left)
	records := make([]dag.Record, m.s.Len())
	for i, rec := range m.s.Records() {
		if records[i] = (dag.Record{State: "pending", ExitCode: -1}); left.Tasks[m.s.Name(i)] != nil {
			records[i] = dag.RecordOf(left.Tasks[m.s.Name(i)])
		}
		m.check(records[i] == rec, "%s is %+v, and is restored as %+v", m.s.Name(i), rec, records[i])
	}
	options := []dag.RestoreOption{dag.WithRunState(left)}
	var tasks []int
	for i := range m.g.Len() {
		if _, _, _, ok := m.s.Expansion(i); ok {
			tasks = append(tasks, i)
		}
	}
	slices.SortStableFunc(tasks, func(a, b int) int { // in the order in which they happened
		first, _ := m.s.Instances(a)
		second, _ := m.s.Instances(b)
		return first - second
	})
	for _, i := range tasks {
		from, count, remote, _ := m.s.Expansion(i)
		options = append(options, dag.WithExpansion(i, from, count, remote))
	}
	return records, options
}

// restore continues with a restored state, which must return exactly the pending decisions.
func (m *simulation) restore() {
	records, options := m.saved()
	m.s = dag.Restore(m.g, records, options...)
	before := m.s.Records()
	d := m.s.Start()
	m.evaluate, m.expand, m.end = map[int]bool{}, map[int]bool{}, nil
	m.check(slices.Equal(d.Place, slices.Sorted(maps.Keys(m.place))), "restored, %v are requested, open are %v", d.Place, m.place)
	for _, i := range d.Place {
		m.check(m.s.Task(i).Claim == m.place[i], "restored, claim of %d is %d, was %d", i, m.s.Task(i).Claim, m.place[i])
	}
	d.Place = nil
	stopped := slices.DeleteFunc(m.dispatched(), func(i int) bool { return !m.s.Cancelled() && !m.s.Task(i).PendingEnd })
	m.check(slices.Equal(d.Stop, stopped), "restored, %v are stopped, to be stopped are %v", d.Stop, stopped)
	m.backoff, m.stops, m.halts = map[int]int32{}, map[int]bool{}, map[int]bool{}
	for name, task := range m.def.Tasks { // a restored state asks for both again
		if m.ref != nil && m.ref.tasks[name].asked == "expand" && task.Condition != "" {
			m.ref.tasks[name].asked = "condition"
		}
	}
	m.take(before, d)
}

// reopen continues an ended run in a new generation.
func (m *simulation) reopen(again dag.Rerun) {
	records, old, put := make(map[string]dag.Record), m.s, again.Tasks
	left, options := m.saved()
	for i, rec := range left {
		records[m.s.Name(i)] = rec
	}
	s, err := dag.Reopen(m.g, left, again, options...)
	if err != nil {
		m.check(m.s.Cancelled() && !again.Failed && len(again.From) == 0, "put back %+v: %v", again, err)
		return
	}
	m.s, m.end, m.sent = s, nil, nil
	m.final, m.stops, m.halts = map[int]dag.Record{}, map[int]bool{}, map[int]bool{}
	var before []dag.Record
	for i := range s.Len() {
		rec, was := records[s.Name(i)]
		m.check(was, "%s was not there before", s.Name(i))
		before = append(before, rec)
		done := rec.State == "completed" || rec.State == "stopped"
		again := slices.ContainsFunc(again.From, func(f string) bool {
			return f == s.Name(i) || slices.Contains(ancestors(m.def, s.Name(i)), f)
		})
		again = again || slices.ContainsFunc(put, func(name string) bool { return name != s.Name(i) && taskOf(name) == s.Name(i) })
		m.check(!done || again || s.Task(i) == rec, "%s had completed and is %+v", s.Name(i), s.Task(i))
	}
	m.ref.putBack(again.Tasks, again.Failed, again.From)
	for _, t := range m.ref.tasks {
		t.ends = min(t.ends, 1)
	}
	m.again = true
	m.take(before, s.Start())
	m.again = false
	m.check(old.Over(), "the run was open")
}
