package switchyardv1

// SlotsTaken returns how many slots of a node its attempts take. Those that run outside of the node take none.
func SlotsTaken(s *NodeSnapshot) int {
	n := 0
	for _, a := range s.GetRunning() {
		if !a.GetRemote() {
			n++
		}
	}
	return n
}
