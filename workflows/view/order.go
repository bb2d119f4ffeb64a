package view

// order is a list of distinct indices, in the order in which they were last put at its end. All operations take constant time.
type order struct {
	links       []link // by index
	first, last int    // -1 if the list is empty
}

// link holds the neighbours of an index in the list, or -1 where it has none.
type link struct {
	before, after int32
	listed        bool
}

func newOrder() order { return order{first: -1, last: -1} }

// toEnd moves index i to the end, or adds it there.
func (o *order) toEnd(i int) {
	for len(o.links) <= i {
		o.links = append(o.links, link{before: -1, after: -1})
	}
	l := &o.links[i]
	if o.last == i {
		return
	}
	if l.listed {
		if l.before >= 0 {
			o.links[l.before].after = l.after
		} else {
			o.first = int(l.after)
		}
		o.links[l.after].before = l.before // i is not the last
	}
	*l = link{before: int32(o.last), after: -1, listed: true}
	if o.last >= 0 {
		o.links[o.last].after = int32(i)
	} else {
		o.first = i
	}
	o.last = i
}

// before and after return the neighbours of an index in the list, or -1 if there is none.
func (o *order) before(i int) int { return int(o.links[i].before) }
func (o *order) after(i int) int  { return int(o.links[i].after) }
