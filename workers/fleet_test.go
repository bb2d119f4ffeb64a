package workers

// knows tells whether the fleet has a snapshot of the node.
func (f *fleet) knows(node string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, ok := f.seen[node]
	return ok
}
