package fanout

import "switchyard/workflows/names"

// child is the child workflow of a partition, from the request for it until its end.
type child struct {
	number int
	fanOut *fanOut
	from   int // its first instance
	phase  phase
	id     string // ID of its workflow; "" while it is wanted
	isLate bool   // it is sent an order as soon as it is open
}

// phase is where a child is on its way.
type phase int

const (
	wanted   phase = iota // it is not prepared yet, and can be kept from starting
	starting              // its workflow is being started
	open
)

// addChild adds the child of a partition.
func (s *State) addChild(m *fanOut, from int) *child {
	s.newest++
	c := &child{number: s.newest, fanOut: m, from: from}
	s.children[c.number], m.children[from] = c, c
	s.do(LimitChildren{Open: len(s.children)})
	return c
}

// removeChild removes a child that has ended, or will never start.
func (s *State) removeChild(number int) *child {
	c := s.children[number]
	delete(s.children, number)
	delete(c.fanOut.children, c.from)
	s.do(LimitChildren{Open: len(s.children)})
	return c
}

// isOpen reports whether a workflow is the child of a partition, and has started and not ended.
func (s *State) isOpen(id string) bool {
	//workflowcheck:ignore (whether there is one does not depend on the order)
	for _, c := range s.children {
		if c.id == id {
			return true
		}
	}
	return false
}

// Prepared continues with a child that is about to start under an ID.
func (s *State) Prepared(number int, id string) {
	c := s.children[number]
	c.phase, c.id = starting, id
	if p := c.fanOut.partitionFrom(c.from); p != nil { // it may have been prepared before a reset
		f, _ := names.ParseFanOutID(id)
		p.Chain = f.Chain
	}
}

// Opened continues with a child whose workflow has started. first is the ID of its first execution.
func (s *State) Opened(number int, first string) []Effect {
	c := s.children[number]
	c.phase = open
	if p := c.fanOut.partitionFrom(c.from); p != nil {
		p.First = first
	}
	if c.isLate {
		c.isLate = false
		s.orderOne(c.fanOut, c.from)
	}
	return s.take()
}

// Unopened ends the partition of a child that was cancelled before it started.
func (s *State) Unopened(number int) []Effect {
	c := s.removeChild(number)
	s.endUnopened(c.fanOut, c.from)
	return s.take()
}

// Lost ends the partition of a child that could not be started, or that has ended, unless the child has reported its end.
func (s *State) Lost(number int, why string) []Effect {
	c := s.removeChild(number)
	s.endLost(c.fanOut, c.from, why)
	return s.take()
}
