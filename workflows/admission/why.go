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
		return "it is held back"
	case q.held[g.index]:
		return "its task is held back"
	case q.paused:
		return "the run is paused"
	case g.concurrency > 0 && g.units >= g.concurrency:
		return fmt.Sprintf("%s of its task under way, which is its concurrency", are(g.units))
	case c.lockFull():
		return fmt.Sprintf("%s of this run ahead of it for the lock %q", are(c.units), c.lock.Name)
	case !c.free && q.full():
		return fmt.Sprintf("%s of this run under way, which is its maxParallel", are(q.counted))
	case c.child && q.children.full():
		return fmt.Sprintf("%s of this run open as child workflows, the most at once", are(q.children.units+q.children.others))
	case g.sizing.wait():
		return fmt.Sprintf("%s of its task waiting for a node", are(g.sizing.unplaced))
	}
	return "its turn comes next"
}

// are returns a clause that states a number of units.
func are(n int) string {
	if n == 1 {
		return "there is 1"
	}
	return fmt.Sprintf("there are %d", n)
}
