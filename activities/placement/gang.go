package placement

import (
	"slices"
)

// gangSize returns the number of requests that are placed in one decision: 1, unless the request is that of a member of a gang.
func (s *spec) gangSize() int { return max(1, int(s.gang.GetSize())) }

// jointQuantity returns what the requests that are placed in one decision take together.
func (s *spec) jointQuantity() quantity {
	q := s.need.quantity()
	for i := range q {
		q[i] *= int64(s.gangSize())
	}
	return q
}

// membersThere returns how many members of the gang of a view have a place on the node.
func (v *view) membersThere() int {
	n := 0
	for key := range v.n.claimed {
		if key.run == v.runID && baseName(key.task) == v.gang.GetTask() {
			n++
		}
	}
	return n
}

// missing returns the number of members of the class's gang whose requests have not arrived, or 0 if the class is not that of a
// gang. Requests that are delayed count as missing.
func (s *requestClass) missing() int {
	if s.gang == nil {
		return 0
	}
	return max(0, s.gangSize()-s.waiting)
}

// freshenGang makes the next pass report the reasons of all members of a gang, because one has joined or left.
func (s *requestClass) freshenGang() {
	if s.gang == nil {
		return
	}
	for r := range s.all() {
		s.freshen(r)
	}
}

// reopenTried makes the class look again at the machines where some members of its gang had room.
func (s *requestClass) reopenTried() {
	for _, m := range s.tried {
		for _, n := range m.nodes {
			s.prospects.reopen(n)
		}
	}
	if len(s.tried) > 0 {
		s.tried, s.prospects.ranking.of = s.tried[:0], nil
	}
}

// members returns the requests of a line that are placed in one decision, in their order.
func (l *line) members() []*request {
	if l.class.gang == nil {
		return []*request{l.first()}
	}
	all := slices.SortedFunc(slices.Values(l.requests), func(a, b *request) int { return compareBool(b.before(a), a.before(b)) })
	return all[:min(len(all), l.class.gangSize())]
}

// placeGang assigns the members of the gang of a line, one after another. If one of them fits no node, it undoes what it has done
// and returns false. Accounts are charged only for a complete gang, because a charge changes their moving averages.
//
// The nodes where some members had room remain closed for the class until one of its other nodes has changed: during a pass
// nodes only fill up, so until then the gang as a whole fits no better.
func (sc *scheduler) placeGang(l *line) bool {
	l.class.reopenTried()
	members := l.members()
	for i, r := range members {
		c, ok := sc.picker.pick(l)
		if !ok {
			sc.withdraw(l.class, members[:i])
			return false
		}
		sc.occupy(r, l, c)
	}
	for range members {
		sc.assign(sc.demand.takeFirst(l))
	}
	return true
}

// withdraw undoes occupy for members of a gang. No class has looked at the nodes meanwhile, so none needs to look again.
func (sc *scheduler) withdraw(s *requestClass, members []*request) {
	for _, r := range slices.Backward(members) {
		n := r.place.node
		r.place.vacate()
		sc.reservations.discharge(r, n)
		if !slices.Contains(s.tried, n.machine) {
			s.tried = append(s.tried, n.machine)
		}
		r.place, r.why = claim{}, reckoning{}
	}
}
