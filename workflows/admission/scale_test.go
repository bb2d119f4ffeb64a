package admission

import "testing"

// The cost of Next depends on what it returns, not on how many tasks wait.
func BenchmarkNext(b *testing.B) {
	for name, n := range map[string]int{"few wait": 1000, "many wait": 100_000} {
		b.Run(name, func(b *testing.B) {
			q := New(10)
			for i := range n {
				q.Add(Request{Task: i, Group: NoGroup, Priority: int32(i % 10)})
			}
			units := q.Next()
			for b.Loop() {
				q.Done(units[0].Lead)
				q.Add(Request{Task: units[0].Lead, Group: NoGroup})
				units = append(units[1:], q.Next()...)
			}
		})
	}
}

// Many fan-outs that share a lock continue one after the other, each in order, and none is forgotten.
func TestManyWaitForOneLock(t *testing.T) {
	t.Parallel()
	q := New(0)
	const groups, each = 1000, 100
	for i := range groups {
		for k := range each {
			q.Add(Request{Task: groups + i*each + k, Group: i, Concurrency: 1, Lock: Lock{Name: "one", Limit: 1}})
		}
	}
	last, went := map[int]int{}, 0
	for units := q.Next(); len(units) > 0; units = q.Next() {
		if len(units) > 2 {
			t.Fatalf("%d ask for the lock", len(units))
		}
		for _, u := range units {
			i := (u.Lead - groups) / each
			if u.Lead < last[i] {
				t.Fatalf("%d after %d", u.Lead, last[i])
			}
			last[i] = u.Lead
			went++
			q.Done(u.Lead)
		}
	}
	if went != groups*each {
		t.Fatalf("%d of %d went on", went, groups*each)
	}
}
