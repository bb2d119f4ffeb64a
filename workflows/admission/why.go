package admission

import "fmt"

// Why returns the reason for which a task waits here, for people, or "" if it does not wait here.
func (q *Queue) Why(task int) string {
	e := q.waiting[task]
	if e == nil {
		return ""
	}
	g, c := e.lane.group, e.lane.class
	switch {
	case q.held[task]:
		return "it is held"
	case q.held[g.index]:
		return "its task is held"
	case q.paused:
		return "the run is paused"
	case g.concurrency > 0 && g.units >= g.concurrency:
		return fmt.Sprintf("its task has reached its concurrency (%d in progress)", g.units)
	case c.lockFull():
		return fmt.Sprintf("its run has %d ahead of it for the lock %q", c.units, c.lock.Name)
	case !c.free && q.full():
		return fmt.Sprintf("its run has reached its maxParallel (%d in progress)", q.counted)
	case c.child && q.children.full():
		return fmt.Sprintf("its run has reached the limit of open child workflows (%d)", q.children.units+q.children.others)
	case g.sizing.wait():
		return fmt.Sprintf("its task has %d waiting for a node", g.sizing.unplaced)
	}
	return "it is next in its run"
}
