package admission

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

// lane holds the waiting entries of one group under one lock. The same limits block all of them.
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
	return g.concurrency > 0 && g.units >= g.concurrency || g.sizing.wait()
}
