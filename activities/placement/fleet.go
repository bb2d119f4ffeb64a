package placement

import (
	"cmp"
	"container/list"
	"slices"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
)

// SetNodes replaces the fleet with the registered nodes. A node that is missing from the list has
// left; its assignments remain until they are released. The cost depends only on the nodes whose
// snapshot or state has changed.
func (q *Queue) SetNodes(nodes []Node) {
	q.round++
	added := false
	for _, told := range nodes {
		if told.Snapshot == nil {
			continue
		}
		n := q.nodes[told.Snapshot.GetName()]
		if n == nil {
			n = q.newNode(told.Snapshot.GetName())
		}
		if n.round == q.round {
			continue // listed twice
		}
		n.round = q.round
		if !n.present {
			q.listed = append(q.listed, n)
			q.all.add(n.number)
			added = true
		}
		q.track(n, told)
	}
	gone := func(n *node) bool { return n.round != q.round }
	for _, n := range q.listed {
		if gone(n) {
			q.leave(n)
		}
	}
	q.listed = slices.DeleteFunc(q.listed, gone)
	if added {
		slices.SortFunc(q.listed, func(a, b *node) int { return cmp.Compare(a.name, b.name) })
	}
	if max(len(q.numbered), len(q.nodeClasses)) > 2*len(q.nodes)+fewNodes {
		q.renumber()
	}
	now := q.opts.Now()
	for _, m := range q.uncounted {
		q.count(m, now)
	}
	clear(q.uncounted)
	q.uncounted = q.uncounted[:0]
}

func (q *Queue) newNode(name string) *node {
	n := &node{
		number:     len(q.numbered),
		name:       name,
		claimed:    map[claimKey]*request{},
		perRun:     map[string]int{},
		byAge:      list.New(),
		priorities: map[int32]int{},
		foreign:    map[claimKey]grant{},
		settled:    map[claimKey]released{},
		health:     q.healths[name],
	}
	q.numbered = append(q.numbered, n)
	q.nodes[name] = n
	return n
}

// renumber closes the gaps that removed nodes and node classes have left in the numbering, because
// every request class has tables indexed by these numbers.
func (q *Queue) renumber() {
	q.layout++
	clear(q.nodeClasses)
	clear(q.numbered)
	q.numbered = q.numbered[:0]
	for _, n := range q.nodes {
		n.number = len(q.numbered)
		q.numbered = append(q.numbered, n)
		n.class = q.nodeClassOf(n)
	}
	q.all.clear()
	for _, n := range q.listed {
		q.all.add(n.number)
	}
}

// track updates a node from what is reported of it.
func (q *Queue) track(n *node, told Node) {
	s, state := told.Snapshot, told.stateNow()
	if n.reason != told.Reason {
		n.reason, q.fleetChanged = told.Reason, true
	}
	if n.present && n.state == state && sameSnapshot(n.snap, s) {
		return
	}
	q.fleetChanged = true
	was := n.class
	n.noteLost(s)
	n.state, n.snap = state, s
	if n.class = q.nodeClassOf(n); !n.present || n.class != was {
		q.reshaped.note(n, len(q.nodes))
	}
	n.present = true
	clear(n.refused)
	n.read(q.opts.Weights)
	q.join(n)
	q.recount(n.machine)
}

// leave marks a node as no longer part of the fleet.
func (q *Queue) leave(n *node) {
	n.present = false
	q.all.remove(n.number)
	q.fleetChanged = true
	q.reshaped.note(n, len(q.nodes))
	q.recount(n.machine)
	q.discard(n)
}

// discard deletes a node that has left the fleet and holds nothing any more.
func (q *Queue) discard(n *node) {
	if n.present || len(n.claimed) > 0 {
		return
	}
	q.part(n)
	delete(q.nodes, n.name)
}

func sameSnapshot(a, b *v1.NodeSnapshot) bool {
	switch {
	case a == b:
		return true
	case a.GetSequence() != b.GetSequence() || a.GetIncarnation() != b.GetIncarnation():
		return false
	}
	// The snapshot of a registration has no sequence number, and may be reported again and again.
	return b.GetSequence() > 0 || proto.Equal(a, b)
}
