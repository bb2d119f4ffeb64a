package status

import v1 "switchyard/proto/switchyard/v1"

// SetItems stores the evaluated list of a foreach.
func (t *table) SetItems(i int, items *v1.Items) {
	if items != nil {
		t.Extras(i).items = items
	}
}

// Items returns the evaluated list of a foreach, or nil if the definition holds the list.
func (t *table) Items(i int) *v1.Items {
	if m := t.entries[i].extras; m != nil {
		return m.items
	}
	return nil
}

// ItemsOf returns the foreach list of a task, evaluated or from the definition, or nil if it has none.
func (t *table) ItemsOf(task string) *v1.Items {
	i, ok := t.graph.Index(task)
	if !ok {
		return nil
	}
	list := t.graph.Definition(i).GetForeach().GetListValue()
	if items := t.Items(i); items != nil || list == nil {
		return items
	}
	return &v1.Items{List: list}
}

// AllItems returns all evaluated foreach lists, by task.
func (t *table) AllItems() map[string]*v1.Items {
	all := map[string]*v1.Items{}
	for i := range t.graph.Len() {
		if items := t.Items(i); items != nil {
			all[t.Name(i)] = items
		}
	}
	return all
}
