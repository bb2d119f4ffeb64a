package admission

import "slices"

// laneKey holds the properties that all entries of a lane share.
type laneKey struct {
	group int
	classKey
}

// classKey holds the properties that all lanes of a class share.
type classKey struct {
	lock        Lock
	free, child bool
}

// lane holds the waiting entries of one group under one lock, among which batches are formed. The same limits block all of
// them.
type lane struct {
	group   *group
	class   *class
	waiting ranks[*entry]
	rank    int // in the heap of its class; -1 if nothing in it may continue
}

func (l *lane) before(o *lane) bool { return l.waiting.top().before(o.waiting.top()) }
func (l *lane) at() *int            { return &l.rank }

// class holds the lanes with the same lock, or none, and with the same answers to whether they count for maxParallel and become
// child workflows.
type class struct {
	classKey
	ready ranks[*lane]
	units int // number of units in flight
	rank  int // in the heap of the queue; -1 if nothing in it may continue
}

func (c *class) before(o *class) bool { return c.ready.top().before(o.ready.top()) }
func (c *class) at() *int             { return &c.rank }

// lockFull reports whether more units could not use the lock. One unit more than the limit requests the lock, so that it
// changes hands without a pause. Further requests would only wait elsewhere, in the way of other runs.
func (c *class) lockFull() bool { return c.lock.Name != "" && c.units > max(c.lock.Limit, 1) }

// group is a fanned-out task, or stands in for the group of a lane that belongs to none.
type group struct {
	index       int // NoGroup if it stands in
	lanes       []*lane
	concurrency int
	units       int // number of units in flight
	waiting     int // number of waiting instances that are not held
	sizing      sizing
}

// blocked reports whether the group's own limits stop it from continuing.
func (g *group) blocked() bool {
	isIncomplete := g.sizing.batch.Whole && g.waiting < g.sizing.batch.Size
	return g.concurrency > 0 && g.units >= g.concurrency || isIncomplete || g.sizing.wait()
}

// lane returns the lane in which a request waits, and creates it if necessary.
func (q *Queue) lane(r Request) *lane {
	key := laneKey{r.Group, classKey{r.Lock, r.Free, r.Child}}
	if l := q.lanes[key]; l != nil {
		return l
	}
	c := q.classes[key.classKey]
	if c == nil {
		c = &class{classKey: key.classKey, rank: -1}
		q.classes[key.classKey] = c
		if c.child {
			q.children.classes = append(q.children.classes, c)
		}
	}
	g := q.groups[r.Group]
	if g == nil {
		g = &group{index: r.Group}
		if r.Group != NoGroup { // requests without a group share no limits
			q.groups[r.Group] = g
		}
	}
	l := &lane{group: g, class: c, rank: -1}
	g.lanes = append(g.lanes, l)
	q.lanes[key] = l
	return l
}

// takeUnit removes the members of a lane's next unit and returns them. The instances of a batch come from one lane and have the
// same priority.
func (q *Queue) takeUnit(l *lane) []int {
	priority := l.waiting.top().Priority
	size := l.group.sizing.size(l.group.waiting, l.group.units, l.group.concurrency)
	var members []int
	for len(members) < size && l.waiting.len() > 0 && l.waiting.top().Priority == priority {
		e := l.waiting.top()
		l.waiting.set(e, false)
		l.group.waiting--
		delete(q.waiting, e.Task)
		members = append(members, e.Task)
	}
	slices.Sort(members)
	return members
}
