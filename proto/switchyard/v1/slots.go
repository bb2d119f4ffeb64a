package switchyardv1

// SlotsTaken returns the number of a node's slots that its attempts take. Remote attempts take none.
func SlotsTaken(s *NodeSnapshot) int {
	n := 0
	for _, a := range s.GetRunning() {
		if !a.GetRemote() {
			n++
		}
	}
	return n
}
