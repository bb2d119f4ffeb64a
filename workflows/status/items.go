package status

import v1 "switchyard/proto/switchyard/v1"

// SetItems keeps the list of a foreach that was evaluated.
func (s *Status) SetItems(i int, items *v1.Items) {
	if items != nil {
		s.Extras(i).items = items
	}
}

// Items returns the list of a foreach that was evaluated, or nil if the definition has it.
func (s *Status) Items(i int) *v1.Items {
	if m := s.entries[i].extras; m != nil {
		return m.items
	}
	return nil
}

// ItemsOf returns the list of the foreach of a task, evaluated or as the definition has it, or nil if it has none.
func (s *Status) ItemsOf(task string) *v1.Items {
	i, ok := s.graph.Index(task)
	if !ok {
		return nil
	}
	list := s.graph.Definition(i).GetForeach().GetListValue()
	if items := s.Items(i); items != nil || list == nil {
		return items
	}
	return &v1.Items{List: list}
}

// AllItems returns the lists of all tasks that were evaluated, by task.
func (s *Status) AllItems() map[string]*v1.Items {
	all := map[string]*v1.Items{}
	for i := range s.graph.Len() {
		if items := s.Items(i); items != nil {
			all[s.Name(i)] = items
		}
	}
	return all
}

// IsHeld reports whether a person holds task i back.
func (s *Status) IsHeld(i int) bool {
	m := s.entries[i].extras
	return m != nil && m.held
}

// HeldBy returns who holds task i back, and why, or "" if it is not held or that is not known.
func (s *Status) HeldBy(i int) string {
	if m := s.entries[i].extras; m != nil {
		return m.heldBy
	}
	return ""
}
