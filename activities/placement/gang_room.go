package placement

import (
	"iter"
	"slices"
)

// trial occupies nodes with members of a gang, to find out how many have room.
type trial struct {
	spec   *spec
	eval   *evaluator
	claims []*claim
}

// fill adds members to a node until the gang is complete or the next one does not pass the filters. It returns how many members have
// room so far, on all nodes.
func (t *trial) fill(n *node, filters []filter) int {
	v := view{spec: t.spec, n: n, now: t.eval.now, stretch: 1}
	for len(t.claims) < t.spec.gangSize() && fitsAll(filters, &v) {
		t.add(&v)
	}
	return len(t.claims)
}

// add adds a member to the node of a view, which has room for it.
func (t *trial) add(v *view) {
	key := claimKey{run: t.spec.runID, task: t.spec.gang.GetTask(), claim: -1 - int32(len(t.claims))} // no request has such a claim
	c := &claim{key: key, node: v.n, grant: v.choose()}
	c.occupy()
	t.claims = append(t.claims, c)
}

// undo removes all members.
func (t *trial) undo() {
	for _, c := range slices.Backward(t.claims) {
		c.vacate()
	}
	t.claims = nil
}

// isPossible reports whether the present nodes could ever run the class: for a gang, all members at once.
func (e *evaluator) isPossible(s *requestClass, f *fleet) bool {
	if !s.prospects.isPossible() || s.gang == nil {
		return s.prospects.isPossible()
	}
	suitable := func(yield func(*node) bool) {
		for _, p := range []*pool{&s.prospects.preferred, &s.prospects.avoided} {
			for _, number := range p.nodes {
				if n := f.numbered[number]; e.couldEverFit(s, n) && !yield(n) {
					return
				}
			}
		}
	}
	return e.mostMembers(&s.spec, suitable) == s.gangSize()
}

// mostMembers returns how many members of a gang would have room on nodes that could ever run one, if these nodes were idle. It
// counts no more than the size of the gang, and so looks at no more nodes than that, unless nodes share a machine.
func (e *evaluator) mostMembers(s *spec, nodes iter.Seq[*node]) int {
	most, idle := 0, map[*machine]*machine{}
	t := &trial{spec: s, eval: e}
	for n := range nodes {
		m := idle[n.machine]
		if m == nil {
			m = &machine{}
			idle[n.machine] = m
		}
		if most = t.fill(n.idleOn(m), e.byAmount); most == s.gangSize() {
			break
		}
	}
	return most
}

// idleOn returns the node as it would be if nothing ran on it, as a node of the machine m.
func (n *node) idleOn(m *machine) *node {
	idle := &node{name: n.name, now: n.now, snap: n.snap, gpus: n.gpus, numa: n.numa, holdings: newHoldings(), machine: m}
	idle.now.gaming = false
	idle.now.availableMB, idle.now.diskFreeGB = float64(n.now.memoryMB), n.snap.GetDisk().GetTotalGb()
	m.nodes = append(m.nodes, idle)
	m.spread()
	return idle
}
