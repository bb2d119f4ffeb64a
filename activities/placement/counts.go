package placement

// Counts returns how many requests wait for a node, those that have been given up
// left out, and how many hold a place on one.
func (q *Queue) Counts() (waiting, placed int) {
	for _, s := range q.active {
		waiting += len(s.waiting)
	}
	for _, n := range q.nodes {
		placed += len(n.claimed)
	}
	return waiting + q.delayed.Len(), placed
}
