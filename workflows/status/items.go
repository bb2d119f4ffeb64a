package status

import v1 "switchyard/proto/switchyard/v1"

// SetItems stores the evaluated list of a foreach.
func (s *Status) SetItems(i int, items *v1.Items) {
	if items != nil {
		s.Extras(i).items = items
	}
}

// Items returns the evaluated list of a foreach, or nil if the definition holds the list.
func (s *Status) Items(i int) *v1.Items {
	if m := s.entries[i].extras; m != nil {
		return m.items
	}
	return nil
}

// ItemsOf returns the foreach list of a task, evaluated or from the definition, or nil if it has none.
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

// AllItems returns all evaluated foreach lists, by task.
func (s *Status) AllItems() map[string]*v1.Items {
	all := map[string]*v1.Items{}
	for i := range s.graph.Len() {
		if items := s.Items(i); items != nil {
			all[s.Name(i)] = items
		}
	}
	return all
}

// IsHeld reports whether a person holds task i.
func (s *Status) IsHeld(i int) bool {
	m := s.entries[i].extras
	return m != nil && m.held
}

// HeldBy returns who holds task i, and why, or "" if it is not held or that is unknown.
func (s *Status) HeldBy(i int) string {
	if m := s.entries[i].extras; m != nil {
		return m.heldBy
	}
	return ""
}
