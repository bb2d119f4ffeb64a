package admission

import (
	"container/heap"
	"slices"
	"testing"
	"time"
)

// fleet runs the units of a fan-out on a number of slots, as a fleet does. It returns the sizes of the units, in the order in
// which they were formed, and the end time.
func fleet(q *Queue, instances, slots int, instance time.Duration, r Request) (sizes []int, end time.Duration) {
	for i := range instances {
		r.Task = 1000 + i
		q.Add(r)
	}
	var queued []Unit
	var running endings
	now := time.Duration(0)
	for {
		for _, u := range q.Next() {
			sizes = append(sizes, len(u.Members))
			queued = append(queued, u)
		}
		for len(queued) > 0 && len(running) < slots {
			u := queued[0]
			queued = queued[1:]
			q.Placed(u.Lead)
			heap.Push(&running, ending{now + time.Duration(len(u.Members))*instance, u})
		}
		if len(running) == 0 {
			return sizes, now
		}
		e := heap.Pop(&running).(ending)
		now = e.at
		q.Observe(r.Group, len(e.Members), time.Duration(len(e.Members))*instance)
		q.Done(e.Lead)
	}
}

type ending struct {
	at time.Duration
	Unit
}

type endings []ending

func (e endings) Len() int           { return len(e) }
func (e endings) Less(i, j int) bool { return e[i].at < e[j].at }
func (e endings) Swap(i, j int)      { e[i], e[j] = e[j], e[i] }
func (e *endings) Push(x any)        { *e = append(*e, x.(ending)) }
func (e *endings) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// An automatic batch converges to about a second of work, however long an instance takes, and the nodes finish at about the
// same time.
func TestAutomaticBatchesLastAboutASecond(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		instances, slots, concurrency int
		instance                      time.Duration
		largest, units                [2]int // at least, at most
	}{
		"short":             {20_000, 4, 0, 1500 * time.Microsecond, [2]int{500, 667}, [2]int{40, 120}},
		"very short":        {100_000, 4, 0, 100 * time.Microsecond, [2]int{1000, 1000}, [2]int{100, 200}},
		"half a second":     {200, 4, 0, 500 * time.Millisecond, [2]int{2, 2}, [2]int{100, 130}},
		"long":              {100, 4, 0, time.Minute, [2]int{1, 1}, [2]int{100, 100}},
		"few":               {6, 4, 0, time.Millisecond, [2]int{1, 2}, [2]int{5, 6}},
		"many slots":        {50_000, 200, 0, 50 * time.Millisecond, [2]int{15, 20}, [2]int{2500, 5500}},
		"little at once":    {10_000, 200, 2, time.Millisecond, [2]int{900, 1000}, [2]int{15, 60}},
		"more than it uses": {10_000, 4, 1000, time.Millisecond, [2]int{400, 1000}, [2]int{15, 120}},
	} {
		t.Run(name, func(t *testing.T) {
			sizes, end := fleet(New(0), test.instances, test.slots, test.instance,
				Request{Group: 1, Concurrency: test.concurrency, Batch: Batch{Auto: true}})
			sum := 0
			for _, n := range sizes {
				sum += n
			}
			at := test.slots
			if test.concurrency > 0 {
				at = min(at, test.concurrency)
			}
			ideal := time.Duration(test.instances) * test.instance / time.Duration(at)
			if sum != test.instances || end > ideal+ideal/10+2*batchWork+test.instance {
				t.Errorf("%d instances took %v; all at once %v", sum, end, ideal)
			}
			if n := slices.Max(sizes); n < test.largest[0] || n > test.largest[1] {
				t.Errorf("the largest batch has %d, want %v", n, test.largest)
			}
			if n := len(sizes); n < test.units[0] || n > test.units[1] {
				t.Errorf("%d units, want %v", n, test.units)
			}
		})
	}
}

// A batch shrinks when instances take longer than before.
func TestAutomaticBatchShrinks(t *testing.T) {
	t.Parallel()
	q := New(0)
	fleet(q, 5000, 2, time.Millisecond, Request{Group: 1, Batch: Batch{Auto: true}})
	sizes, _ := fleet(q, 5000, 2, 300*time.Millisecond, Request{Group: 1, Batch: Batch{Auto: true}})
	if n := sizes[len(sizes)-100]; n != 3 {
		t.Errorf("batches of %d in the end, want 3: %v", n, sizes[:50])
	}
}

// A batch of a fixed size has that size, and the remaining instances start at once.
func TestFixedBatchHasItsSize(t *testing.T) {
	t.Parallel()
	sizes, _ := fleet(New(0), 10, 1, time.Minute, Request{Group: 1, Batch: Batch{Size: 4}})
	if !slices.Equal(sizes, []int{4, 4, 2}) {
		t.Errorf("%v", sizes)
	}
}

// An estimate from others lets a group start with good batches, but does not override what the group has observed itself.
func TestLearnedEstimateDoesNotOverrideObservations(t *testing.T) {
	const instance = time.Millisecond
	r := Request{Group: 3, Batch: Batch{Auto: true}}
	first := New(0)
	slow, _ := fleet(first, 20_000, 2, instance, r)
	estimate := first.DurationEstimate(3)
	second := New(0)
	second.Learn(3, estimate)
	quick, _ := fleet(second, 20_000, 2, instance, r)
	if estimate.Instance < instance || estimate.Batch < 500 || slow[0] != 1 || quick[0] < 500 || len(quick) >= len(slow) {
		t.Errorf("pace %v; %d units from %d on, with it %d from %d on", estimate, len(slow), slow[0], len(quick), quick[0])
	}
	second.Learn(3, DurationEstimate{Instance: time.Hour, Batch: 1})
	if got := second.DurationEstimate(3); got.Instance > 2*instance {
		t.Errorf("learned %v over what it knew", got)
	}
	if got := New(0).DurationEstimate(3); got != (DurationEstimate{}) {
		t.Errorf("of nothing %v", got)
	}
}
