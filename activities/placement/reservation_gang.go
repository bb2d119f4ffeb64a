package placement

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// opening is when a node is expected to have room for one more member of a gang. Its spare part is what all members so far leave.
type opening struct {
	node *node
	outlook
}

// reserveGang returns the reservations of the gang of a line: on its former nodes, if they can still serve it, or on the
// nodes where it can start soonest. It returns nil if there are not enough of them, because a gang that held a part would keep it
// from other gangs for nothing.
func (rs *reservations) reserveGang(l *line, now time.Time) []*reservation {
	var former []*node
	for _, res := range l.first().reserved {
		former = append(former, res.node)
	}
	if len(former) > 0 {
		if all := rs.openings(l.class, former, now); len(all) == l.class.gangSize() {
			return rs.reserveOpenings(l, all, now)
		}
	}
	if rs.searches == 0 {
		rs.isStale = true
		return nil
	}
	rs.searches--
	p := &l.class.prospects
	nodes := rs.sampleOf(&p.preferred, l.class.gangSize())
	all := rs.openings(l.class, nodes, now)
	if len(all) < l.class.gangSize() && len(p.avoided.nodes) > 0 {
		all = rs.openings(l.class, append(nodes, rs.sampleOf(&p.avoided, l.class.gangSize())...), now)
	}
	if len(all) < l.class.gangSize() {
		return nil
	}
	return rs.reserveOpenings(l, all, now)
}

// sampleOf returns the nodes of a pool, or some of them, starting anywhere, if there are many.
func (rs *reservations) sampleOf(p *pool, size int) []*node {
	most, from := max(reserveSample, 2*size), 0
	if len(p.nodes) > most {
		from = rs.rand.IntN(len(p.nodes))
	}
	var out []*node
	for i := range min(len(p.nodes), most) {
		out = append(out, rs.fleet.numbered[p.nodes[(from+i)%len(p.nodes)]])
	}
	return out
}

// openings returns the soonest openings for all members of a gang on some nodes, or fewer if there are not enough. It uses one node
// of each machine, because a machine has one reservation.
func (rs *reservations) openings(s *requestClass, nodes []*node, now time.Time) []opening {
	var all []opening
	used := map[*machine]bool{}
	for _, n := range nodes {
		if !used[n.machine] && !rs.isTaken(n) {
			of := rs.openingsOn(s, n, now)
			used[n.machine] = len(of) > 0
			all = append(all, of...)
		}
	}
	slices.SortStableFunc(all, func(a, b opening) int {
		return cmp.Or(compareBool(b.isKnown, a.isKnown), a.at.Compare(b.at), cmp.Compare(a.node.name, b.node.name))
	})
	return all[:min(len(all), s.gangSize())]
}

// openingsOn returns the openings for members of a gang on a node, the soonest first.
func (rs *reservations) openingsOn(s *requestClass, n *node, now time.Time) (all []opening) {
	v := view{spec: &s.spec, n: n, now: now, stretch: 1}
	if !rs.accepts(s, &v) {
		return nil
	}
	t := &trial{spec: &s.spec, eval: rs.eval}
	next := opening{node: n, outlook: outlook{at: now, isKnown: true}}
	ends := rs.ends(n.machine, now)
	for len(all) < s.gangSize() {
		if fitsAll(rs.eval.byAmount, &v) {
			next.spare = v.spare()
			all = append(all, next)
			t.add(&v)
			continue
		}
		if len(ends) == 0 {
			break
		}
		defer rs.lift(ends[0].claim)()
		next.addEnd(ends[0])
		ends = ends[1:]
	}
	t.undo()
	return all
}

// reserveOpenings returns the reservations for all members of the gang of a line. The gang starts when the last of the openings is
// there, so that is the time of all of them.
func (rs *reservations) reserveOpenings(l *line, all []opening, now time.Time) []*reservation {
	last := slices.MaxFunc(all, func(a, b opening) int { return a.at.Compare(b.at) })
	isKnown := !slices.ContainsFunc(all, func(o opening) bool { return !o.isKnown })
	var out []*reservation
	for _, o := range all {
		o.at, o.isKnown = last.at, isKnown
		// A later opening on the same node says what all members there leave.
		if i := slices.IndexFunc(out, func(res *reservation) bool { return res.node == o.node }); i >= 0 {
			out[i].outlook = o.outlook
			continue
		}
		out = append(out, &reservation{request: l.first(), members: l.members(), node: o.node, since: now, outlook: o.outlook})
	}
	for i, res := range out {
		at := slices.IndexFunc(l.first().reserved, func(old *reservation) bool { return old.node == res.node })
		if at < 0 {
			rs.fleet.ledger.noteRoom(res.node.machine) // the gang may fit already
			continue
		}
		out[i] = l.first().reserved[at]
		rs.renew(out[i], res.outlook)
	}
	return out
}

// nodesOf lists the nodes of reservations.
func nodesOf(all []*reservation) string {
	var names []string
	for _, res := range all {
		names = append(names, res.node.name)
	}
	slices.Sort(names)
	if more := len(names) - namedNodes; more > 0 {
		names = append(names[:namedNodes], fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
