package admission

import (
	"math"
	"time"
)

// Queue holds the tasks of a run that could start but may not be requested yet.
type Queue struct {
	maxParallel int
	paused      bool
	held        map[int]bool
	waiting     map[int]*entry
	lanes       map[laneKey]*lane
	groups      map[int]*group
	classes     map[classKey]*class
	ready       ranks[*class] // classes that count for maxParallel
	free        ranks[*class] // classes that do not count
	underWay    map[int]*unit
	counted     int // units in flight that count for maxParallel
	children    childLimit
	age         uint64
}

// childLimit is the limit on child workflows of the run and their current number.
type childLimit struct {
	most    int // 0 means no limit
	units   int // units in flight that are child workflows
	others  int // child workflows that are not units
	classes []*class
}

func (l *childLimit) full() bool { return l.most > 0 && l.units+l.others >= l.most }

// unit is a unit in flight.
type unit struct {
	lane   *lane
	placed bool
}

// New returns an empty queue. maxParallel is the most units in flight, not counting free ones; 0 means no limit.
func New(maxParallel int) *Queue {
	return &Queue{
		maxParallel: maxParallel,
		held:        map[int]bool{},
		waiting:     map[int]*entry{},
		lanes:       map[laneKey]*lane{},
		groups:      map[int]*group{},
		classes:     map[classKey]*class{},
		underWay:    map[int]*unit{},
	}
}

// LimitChildren sets the most child workflows that the run may have open at once; 0 means no limit.
func (q *Queue) LimitChildren(most int) {
	q.children.most = most
	q.rankChildren()
}

// SetChildren sets how many child workflows the run has open besides the units in flight.
func (q *Queue) SetChildren(others int) {
	if others != q.children.others {
		q.children.others = others
		q.rankChildren()
	}
}

// FreeChildren returns how many more child workflows the run may open.
func (q *Queue) FreeChildren() int {
	if q.children.most == 0 {
		return math.MaxInt
	}
	return q.children.most - q.children.units - q.children.others
}

// countChild adds n to the number of units that are child workflows, if the class is one of child workflows.
func (q *Queue) countChild(c *class, n int) {
	if c.child {
		q.children.units += n
		q.rankChildren()
	}
}

// rankChildren updates the heap positions of the classes of child workflows after their number has changed.
func (q *Queue) rankChildren() {
	for _, c := range q.children.classes {
		q.rank(c)
	}
}

// Add queues a task. For a task that is already waiting it is a no-op. A task that was the lead of a unit must be added again
// after Done.
func (q *Queue) Add(r Request) {
	if q.waiting[r.Task] != nil {
		return
	}
	q.age++
	e := &entry{Request: r, lane: q.lane(r), age: q.age, rank: -1}
	q.waiting[r.Task] = e
	if g := e.lane.group; r.Group != NoGroup {
		g.concurrency, g.sizing.batch = r.Concurrency, r.Batch
	}
	q.enter(e, !q.held[r.Task])
}

// Remove withdraws a task and reports whether it was still waiting here.
func (q *Queue) Remove(task int) bool {
	e := q.waiting[task]
	if e == nil {
		return false
	}
	delete(q.waiting, task)
	q.enter(e, false)
	return true
}

// Next returns the units that may continue now, in order. Each counts as in flight until Done. The cost is proportional to the
// number of returned units.
func (q *Queue) Next() []Unit {
	var units []Unit
	for c := q.first(); c != nil; c = q.first() {
		l := c.ready.top()
		u := Unit{Members: q.takeUnit(l), Lock: c.lock}
		u.Lead = u.Members[0]
		q.underWay[u.Lead] = &unit{lane: l}
		c.units++
		if !c.free {
			q.counted++
		}
		l.group.units++
		l.group.sizing.unplaced++
		q.settle(l)
		q.countChild(c, 1)
		units = append(units, u)
	}
	return units
}

// UnderWay registers a unit that was in flight before this queue existed, by its lead. It counts until Done.
func (q *Queue) UnderWay(r Request) {
	l := q.lane(r)
	if r.Group != NoGroup {
		l.group.concurrency, l.group.sizing.batch = r.Concurrency, r.Batch
	}
	q.underWay[r.Task] = &unit{lane: l, placed: true}
	l.class.units++
	if !l.class.free {
		q.counted++
	}
	l.group.units++
	q.settle(l)
	q.countChild(l.class, 1)
}

// first returns the class that continues next, or nil if none may.
func (q *Queue) first() *class {
	counted, free := q.ready.len() > 0 && !q.full(), q.free.len() > 0
	switch {
	case q.paused || !counted && !free:
		return nil
	case counted && (!free || q.ready.top().before(q.free.top())):
		return q.ready.top()
	}
	return q.free.top()
}

// Placed records that a unit has a node. Only the size of automatic batches depends on it.
func (q *Queue) Placed(lead int) {
	if u := q.underWay[lead]; u != nil && !u.placed {
		u.placed = true
		u.lane.group.sizing.unplaced--
		q.settle(u.lane)
	}
}

// Done records that a unit is no longer in flight, however it has ended.
func (q *Queue) Done(lead int) {
	u := q.underWay[lead]
	if u == nil {
		return
	}
	q.Placed(lead)
	delete(q.underWay, lead)
	u.lane.class.units--
	if !u.lane.class.free {
		q.counted--
	}
	u.lane.group.units--
	q.settle(u.lane)
	q.countChild(u.lane.class, -1)
}

// full reports whether the run has reached maxParallel.
func (q *Queue) full() bool { return q.maxParallel > 0 && q.counted >= q.maxParallel }

// enter adds an entry to its lane or removes it.
func (q *Queue) enter(e *entry, in bool) {
	if was := e.rank >= 0; in && !was {
		e.lane.group.waiting++
	} else if was && !in {
		e.lane.group.waiting--
	}
	if in || e.rank >= 0 {
		e.lane.waiting.set(e, in)
		q.settle(e.lane)
	}
}

// settle updates the heap position of a changed lane and then of the other lanes in its group, one at a time, because a heap
// tolerates only one misplaced element.
func (q *Queue) settle(l *lane) {
	q.put(l)
	for _, o := range l.group.lanes {
		if o != l {
			q.put(o)
		}
	}
}

// put updates the heap positions of a lane and its class.
func (q *Queue) put(l *lane) {
	l.class.ready.set(l, l.waiting.len() > 0 && !l.group.blocked() && !q.held[l.group.index])
	q.rank(l.class)
}

// rank updates the heap position of a class.
func (q *Queue) rank(c *class) {
	tops := &q.ready
	if c.free {
		tops = &q.free
	}
	tops.set(c, c.ready.len() > 0 && !c.lockFull() && !(c.child && q.children.full()))
}

// DurationEstimate returns the estimate for the instances of a group.
func (q *Queue) DurationEstimate(group int) DurationEstimate {
	g := q.groups[group]
	if g == nil {
		return DurationEstimate{}
	}
	return DurationEstimate{Instance: g.sizing.instance, Batch: g.sizing.target}
}

// Learn takes over the estimate of another queue for a group. It is a no-op if the group has an estimate of its own.
func (q *Queue) Learn(task int, p DurationEstimate) {
	g := q.groups[task]
	if g == nil {
		g = &group{index: task}
		q.groups[task] = g
	}
	if g.sizing.instance == 0 && p.Instance > 0 {
		g.sizing.instance, g.sizing.target = p.Instance, min(p.Batch, maxBatch)
	}
}

// Observe records that a number of instances of a group have run in sequence and took a time in total.
func (q *Queue) Observe(group, instances int, took time.Duration) {
	if g := q.groups[group]; g != nil && instances > 0 {
		g.sizing.observe(instances, took)
	}
}
