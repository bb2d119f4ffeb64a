package workers

import "switchyard/workflows/names"

// knows tells whether a node is up in the owner's fleet.
func (c *Control) knows(node string) bool {
	t := c.current()
	if t == nil {
		return false
	}
	f := t.fleet
	f.mu.Lock()
	defer f.mu.Unlock()
	s, ok := f.seen[node]
	return ok && s.entry.Record.GetState() != names.NodeOffline
}
