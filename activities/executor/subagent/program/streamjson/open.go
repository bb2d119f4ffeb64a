package streamjson

// open holds the newest maxOpen entries that later lines may refer to by id.
type open[T any] struct {
	byID  map[string]T
	order []string
}

// put adds an entry. An entry without an id is dropped, because no later line can refer to it.
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

// remove removes an entry and returns it.
func (o *open[T]) remove(id string) (T, bool) {
	v, found := o.byID[id]
	delete(o.byID, id)
	return v, found
}
