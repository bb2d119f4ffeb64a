package admission

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// model is the same queue in the simplest form: it looks at everything that waits, each time.
type model struct {
	maxParallel int
	children    int // maximum number of child workflows
	others      int // child workflows that are not units
	paused      bool
	held        map[int]bool
	waiting     []Request // oldest first
	underWay    map[int]modelUnit
}

type modelUnit struct {
	Request
	placed bool
}

func (m *model) count(of func(modelUnit) bool) int {
	n := 0
	for _, u := range m.underWay {
		if of(u) {
			n++
		}
	}
	return n
}

// may reports whether a unit of the request may continue.
func (m *model) may(r Request) bool {
	inGroup := func(u modelUnit) bool { return r.Group != NoGroup && u.Group == r.Group }
	unplaced := func(u modelUnit) bool { return inGroup(u) && !u.placed }
	switch {
	case m.paused, m.held[r.Task], r.Group != NoGroup && m.held[r.Group]:
	case r.Child && m.children > 0 && m.count(func(u modelUnit) bool { return u.Child })+m.others >= m.children:
	case !r.Free && m.maxParallel > 0 && m.count(func(u modelUnit) bool { return !u.Free }) >= m.maxParallel:
	case r.Group != NoGroup && r.Concurrency > 0 && m.count(inGroup) >= r.Concurrency:
	case r.Batch.Auto && r.Group != NoGroup && m.count(unplaced) >= defaultPrefetch:
	case r.Lock.Name != "" && m.count(func(u modelUnit) bool { return u.Lock == r.Lock && u.Free == r.Free && u.Child == r.Child }) > r.Lock.Limit:
	default:
		return true
	}
	return false
}

// next returns the first request that may continue, with all tasks that could join its unit, in order.
func (m *model) next() (first Request, with []int, ok bool) {
	for _, r := range m.waiting {
		if m.may(r) && (!ok || r.Priority > first.Priority) {
			first, ok = r, true
		}
	}
	for _, r := range m.waiting {
		if ok && r.Priority == first.Priority && r.Lock == first.Lock && r.Free == first.Free && r.Child == first.Child && !m.held[r.Task] &&
			(r.Task == first.Task || first.Group != NoGroup && r.Group == first.Group) {
			with = append(with, r.Task)
		}
	}
	return first, with, ok
}

func (m *model) remove(task int) bool {
	n := len(m.waiting)
	m.waiting = slices.DeleteFunc(m.waiting, func(r Request) bool { return r.Task == task })
	return len(m.waiting) < n
}

// check compares the result of Next with the requests that may continue.
func (m *model) check(t *rapid.T, units []Unit) {
	for _, u := range units {
		first, with, ok := m.next()
		if !ok || len(u.Members) > len(with) || !slices.Contains(u.Members, first.Task) || u.Lock != first.Lock || u.Lead != u.Members[0] {
			t.Fatalf("unit %+v; want one of %v with lock %v", u, with, first.Lock)
		}
		want := slices.Sorted(slices.Values(with[:len(u.Members)]))
		if !slices.Equal(u.Members, want) {
			t.Fatalf("members %v, want %v", u.Members, want)
		}
		size := max(1, first.Batch.Size)
		if first.Group == NoGroup {
			size = 1
		} else if first.Batch.Auto {
			size = min(len(u.Members), maxBatch)
		}
		if len(u.Members) != min(size, len(with)) {
			t.Fatalf("%d members of %d, the batch is %+v", len(u.Members), len(with), first.Batch)
		}
		for _, task := range u.Members {
			m.remove(task)
		}
		m.underWay[u.Lead] = modelUnit{Request: first}
	}
	if r, _, ok := m.next(); ok {
		t.Fatalf("%+v may continue and does not", r)
	}
}

// Whatever happens in whatever order, limits are kept, nothing that may continue is held up, the order is right, and each added
// task is admitted once.
func TestQueueIsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const groups, tasks = 3, 30 // the first numbers are the groups
		maxParallel := rapid.SampledFrom([]int{0, 0, 1, 3, 7}).Draw(t, "maxParallel")
		q := New(maxParallel)
		children := rapid.SampledFrom([]int{0, 1, 3}).Draw(t, "children")
		q.LimitChildren(children)
		m := &model{maxParallel: maxParallel, children: children, held: map[int]bool{}, underWay: map[int]modelUnit{}}
		locks := []Lock{{}, {}, {Name: "a", Limit: 1}, {Name: "b", Limit: 2}}
		kinds := make([]Request, groups)
		for g := range kinds {
			kinds[g] = Request{
				Group:       g,
				Concurrency: rapid.IntRange(0, 3).Draw(t, "concurrency"),
				Batch:       Batch{Size: rapid.IntRange(0, 4).Draw(t, "batch"), Auto: rapid.Bool().Draw(t, "auto")},
				Lock:        rapid.SampledFrom(locks).Draw(t, "lock of the group"),
				Free:        rapid.Bool().Draw(t, "free group"),
				Child:       rapid.Bool().Draw(t, "group of children"),
			}
		}
		added, out := map[int]int{}, map[int]int{}
		busy := map[int]int{} // task -> lead of its unit
		follow := func() {
			units := q.Next()
			m.check(t, units)
			for _, u := range units {
				for _, task := range u.Members {
					out[task]++
					busy[task] = u.Lead
				}
			}
		}
		done := func(lead int) {
			q.Done(lead)
			delete(m.underWay, lead)
			for task, l := range busy {
				if l == lead {
					delete(busy, task)
				}
			}
		}
		leads := func() []int {
			var all []int
			for lead := range m.underWay {
				all = append(all, lead)
			}
			slices.Sort(all)
			return all
		}
		task := rapid.IntRange(groups, tasks-1)
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				r := Request{Group: NoGroup, Lock: rapid.SampledFrom(locks).Draw(t, "lock"), Free: rapid.Bool().Draw(t, "free"), Child: rapid.Bool().Draw(t, "child")}
				r.Task = task.Draw(t, "task")
				if g := r.Task % (groups + 1); g < groups {
					kinds[g].Task = r.Task
					r = kinds[g]
				}
				r.Priority = int32(rapid.IntRange(0, 2).Draw(t, "priority"))
				if _, is := busy[r.Task]; is {
					t.Skip("under way")
				}
				q.Add(r)
				if !slices.ContainsFunc(m.waiting, func(w Request) bool { return w.Task == r.Task }) {
					m.waiting = append(m.waiting, r)
					added[r.Task]++
				}
			},
			"remove": func(t *rapid.T) {
				i := task.Draw(t, "task")
				was := m.remove(i)
				if q.Remove(i) != was {
					t.Fatalf("remove %d: want %v", i, was)
				}
				if was {
					added[i]--
				}
			},
			"next": func(*rapid.T) { follow() },
			"done": func(t *rapid.T) {
				if all := leads(); len(all) > 0 {
					done(rapid.SampledFrom(all).Draw(t, "lead"))
				}
			},
			"placed": func(t *rapid.T) {
				if all := leads(); len(all) > 0 {
					lead := rapid.SampledFrom(all).Draw(t, "lead")
					q.Placed(lead)
					u := m.underWay[lead]
					u.placed = true
					m.underWay[lead] = u
				}
			},
			"hold":    func(t *rapid.T) { i := rapid.IntRange(0, tasks-1).Draw(t, "task"); q.Hold(i); m.held[i] = true },
			"release": func(t *rapid.T) { i := rapid.IntRange(0, tasks-1).Draw(t, "task"); q.Release(i); delete(m.held, i) },
			"others": func(t *rapid.T) {
				m.others = rapid.IntRange(0, 2).Draw(t, "others")
				q.SetChildren(m.others)
			},
			"pause":  func(*rapid.T) { q.Pause(); m.paused = true },
			"resume": func(*rapid.T) { q.Resume(); m.paused = false },
			"observe": func(t *rapid.T) {
				q.Observe(rapid.IntRange(-1, groups).Draw(t, "group"), rapid.IntRange(0, 5).Draw(t, "instances"), batchWork/7)
			},
			"": func(t *rapid.T) {
				for _, r := range m.waiting {
					if q.Why(r.Task) == "" {
						t.Fatalf("%d waits and has no reason", r.Task)
					}
				}
				if q.Paused() != m.paused {
					t.Fatal("paused")
				}
			},
		})
		// In the end, everything is admitted.
		q.SetChildren(0)
		m.others = 0
		q.Resume()
		m.paused = false
		for i := range tasks {
			q.Release(i)
			delete(m.held, i)
		}
		for follow(); len(m.underWay) > 0; follow() {
			done(leads()[0])
		}
		for i := range tasks {
			if added[i] != out[i] || q.Why(i) != "" || q.held[i] {
				t.Fatalf("task %d: added %d times, came out %d times; %s", i, added[i], out[i], q.Why(i))
			}
		}
	})
}

// Why returns the reason that actually applies.
func TestWhyNamesTheLimitThatApplies(t *testing.T) {
	t.Parallel()
	each := Request{Task: 10, Group: 1, Concurrency: 1}
	last := Request{Task: 20, Group: NoGroup}
	locked := Request{Task: 20, Group: NoGroup, Lock: Lock{Name: "db", Limit: 1}}
	for want, test := range map[string]struct {
		maxParallel int
		before      []Request
		r           Request
		change      func(*Queue)
	}{
		"it is held":        {0, nil, last, func(q *Queue) { q.Hold(20) }},
		"its task is held":  {0, nil, each, func(q *Queue) { q.Hold(1) }},
		"the run is paused": {0, nil, last, (*Queue).Pause},
		"its task has reached its concurrency (1 in progress)": {0, []Request{{Task: 9, Group: 1, Concurrency: 1}}, each, nil},
		`its run has 2 ahead of it for the lock "db"`:          {0, locks(2), locked, nil},
		"its run has reached its maxParallel (2 in progress)":  {2, []Request{{Task: 2, Group: NoGroup}, {Task: 3, Group: NoGroup}}, last, nil},
		"its task has 8 waiting for a node":                    {0, auto(9)[:8], auto(9)[8], nil},
		"its run has reached the limit of open child workflows (2)": {
			0, []Request{{Task: 2, Group: NoGroup, Child: true}}, Request{Task: 20, Group: NoGroup, Child: true},
			func(q *Queue) { q.LimitChildren(2); q.SetChildren(1) },
		},
		"it is next in its run": {0, nil, last, nil},
	} {
		t.Run(want, func(t *testing.T) {
			q := New(test.maxParallel)
			for _, r := range test.before {
				q.Add(r)
			}
			if n := len(q.Next()); n != len(test.before) {
				t.Fatalf("%d units have left the queue", n)
			}
			q.Add(test.r)
			if test.change != nil {
				test.change(q)
			}
			if got := q.Why(test.r.Task); got != want {
				t.Errorf("%q, want %q", got, want)
			}
			if units := q.Next(); (len(units) == 0) != (want != "it is next in its run") {
				t.Errorf("units have left the queue: %v", units)
			}
		})
	}
}

func locks(n int) (rs []Request) {
	for i := range n {
		rs = append(rs, Request{Task: 2 + i, Group: NoGroup, Lock: Lock{Name: "db", Limit: 1}})
	}
	return rs
}

func auto(n int) (rs []Request) {
	for i := range n {
		rs = append(rs, Request{Task: 100 + i, Group: 7, Batch: Batch{Auto: true}})
	}
	return rs
}
