package streamjson

// open has what later lines may add to, by its id: the newest maxOpen of them.
type open[T any] struct {
	byID  map[string]T
	order []string
}

// put adds an entry. One without an id is found by no later line.
func (o *open[T]) put(id string, v T) {
	if id == "" {
		return
	}
	if o.byID == nil {
		o.byID = make(map[string]T)
	}
	if _, known := o.byID[id]; !known {
		o.order = append(o.order, id)
	}
	o.byID[id] = v
	if len(o.order) > maxOpen {
		delete(o.byID, o.order[0])
		o.order = o.order[1:]
	}
}

func (o *open[T]) find(id string) (T, bool) {
	v, found := o.byID[id]
	return v, found
}

// remove returns an entry, and forgets it.
func (o *open[T]) remove(id string) (T, bool) {
	v, found := o.byID[id]
	delete(o.byID, id)
	return v, found
}
