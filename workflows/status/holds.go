package status

// IsHeld reports whether a person holds task i.
func (s *shown) IsHeld(i int) bool {
	m := s.entries[i].extras
	return m != nil && m.held
}

// HeldBy returns who holds task i, and why, or "" if it is not held or that is unknown.
func (s *shown) HeldBy(i int) string {
	if m := s.entries[i].extras; m != nil {
		return m.heldBy
	}
	return ""
}

// SetHeld shows whether a person holds task i, and who and why if known.
func (s *shown) SetHeld(i int, held bool, by string) {
	s.Extras(i).held, s.Extras(i).heldBy = held, by
	s.Touch(i)
}
