package admission

// laneKey is what is the same for all that waits in a lane.
type laneKey struct {
	group int
	classKey
}

// classKey is what is the same for all of a class.
type classKey struct {
	lock        Lock
	free, child bool
}

// lane holds what waits of one group under one lock: the same things block all of it.
type lane struct {
	group   *group
	class   *class
	waiting ranks[*entry]
	rank    int // in the heap of its class; -1: nothing of it may continue
}

func (l *lane) before(o *lane) bool { return l.waiting.top().before(o.waiting.top()) }
func (l *lane) at() *int            { return &l.rank }

// class is what needs the same lock, or none, counts for maxParallel or not, and becomes a child workflow or not.
type class struct {
	classKey
	ready ranks[*lane]
	units int // under way
	rank  int // in the heap of the queue; -1: nothing of it may continue
}

func (c *class) before(o *class) bool { return c.ready.top().before(o.ready.top()) }
func (c *class) at() *int             { return &c.rank }

// lockFull reports whether more units could not use the lock. One more than may hold it asks
// for it, so that it changes hands without a pause; all of them asking would only
// wait elsewhere, and in the way of other runs.
func (c *class) lockFull() bool { return c.lock.Name != "" && c.units > max(c.lock.Limit, 1) }

// group is a fanned-out task, or stands for a lane that is of none.
type group struct {
	index       int // NoGroup: none
	lanes       []*lane
	concurrency int
	units       int // under way
	waiting     int // instances that wait and are not held
	sizing      sizing
}

// blocked says that nothing of the group may continue by its own limits.
func (g *group) blocked() bool {
	return g.concurrency > 0 && g.units >= g.concurrency || g.sizing.wait()
}
