package status

// Suspended returns who has suspended task i, and why, or "" if it is not suspended.
func (s *shown) Suspended(i int) string {
	if m := s.entries[i].extras; m != nil {
		return m.suspended
	}
	return ""
}

// SetSuspended shows who has suspended task i, and why. An empty why means that it runs again.
func (s *shown) SetSuspended(i int, why string) {
	if s.Suspended(i) == why {
		return
	}
	before := s.ShownState(i)
	s.Extras(i).suspended = why
	s.recount(i, before)
	s.Touch(i)
}
