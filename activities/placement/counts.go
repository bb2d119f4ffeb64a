package placement

// Counts returns the number of requests that wait for a node, without those that were given up, and
// the number of requests that hold a place on a node.
func (q *Queue) Counts() (waiting, placed int) {
	for _, s := range q.active {
		waiting += len(s.waiting)
	}
	for _, n := range q.nodes {
		placed += len(n.claimed)
	}
	return waiting + q.delayed.Len(), placed
}
