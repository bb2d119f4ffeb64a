package placement

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// fleet is the set of registered nodes, in the tables that a pass reads. It knows nothing of
// requests: an assignment is a claim on a node.
type fleet struct {
	weights  *Weights
	accounts *accounts
	byName   map[string]*node // present nodes, and nodes that have left but still hold something
	listed   []*node          // present nodes, by name
	present  pool             // present nodes by number, from which a request class starts
	numbered []*node          // by node.number
	layout   uint64           // changes when nodes and node classes are renumbered
	classes  nodeClasses
	round    uint64 // number of the newest replace
	ledger   *ledger
	healths  *healths
	log      *fleetLog
}

func newFleet(opts Options, accounts *accounts) *fleet {
	f := &fleet{
		weights:  opts.Weights,
		accounts: accounts,
		byName:   map[string]*node{},
		layout:   1,
		classes:  newNodeClasses(),
		log:      &fleetLog{},
	}
	f.ledger = newLedger(opts.Settle, accounts, f.log)
	f.healths = newHealths(f.node, f.log, opts.Settled)
	return f
}

// node returns the node of a name, which may have left, or nil if there is none.
func (f *fleet) node(name string) *node { return f.byName[name] }

// replace replaces the fleet with the given nodes. A node that is missing from the list has left;
// its claims remain until they are released. The cost depends only on the nodes whose snapshot or
// state has changed.
func (f *fleet) replace(nodes []Node, now time.Time) {
	f.round++
	added := false
	for _, given := range nodes {
		if given.Snapshot == nil {
			continue
		}
		n := f.byName[given.Snapshot.GetName()]
		if n == nil {
			n = f.add(given.Snapshot.GetName())
		}
		if n.round == f.round {
			continue // listed twice
		}
		n.round = f.round
		if !n.present {
			f.listed = append(f.listed, n)
			f.log.setSize(len(f.listed))
			f.present.add(n.number)
			added = true
		}
		f.update(n, given, now)
	}
	isGone := func(n *node) bool { return n.round != f.round }
	for _, n := range f.listed {
		if isGone(n) {
			f.remove(n, now)
		}
	}
	f.listed = slices.DeleteFunc(f.listed, isGone)
	f.log.setSize(len(f.listed))
	if added {
		slices.SortFunc(f.listed, func(a, b *node) int { return cmp.Compare(a.name, b.name) })
	}
	if max(len(f.numbered), f.classes.len()) > 2*len(f.byName)+fewNodes {
		f.renumber()
	}
	f.ledger.recount(now)
	f.accounts.total = f.total()
}

// total returns everything that the present nodes have. What the nodes of a machine share counts once.
func (f *fleet) total() quantity {
	var sum quantity
	for _, n := range f.listed {
		sum[slotUnit] += int64(n.now.slots)
		sum[remoteUnit] += names.MaxRemoteAttempts
		if n.machine.firstPresent() == n {
			sum[coreUnit] += n.now.milliCores
			sum[memoryUnit] += n.now.memoryMB
			sum[gpuUnit] += int64(len(n.gpus)) * 1000
		}
	}
	return sum
}

// add adds a node that has not joined a machine yet.
func (f *fleet) add(name string) *node {
	n := &node{number: len(f.numbered), name: name, holdings: newHoldings(), health: f.healths.healthOf(name)}
	f.numbered = append(f.numbered, n)
	f.byName[name] = n
	return n
}

// renumber closes the gaps that removed nodes and node classes have left in the numbering, because
// every request class has tables indexed by these numbers.
func (f *fleet) renumber() {
	f.layout++
	f.classes.clear()
	clear(f.numbered)
	f.numbered = f.numbered[:0]
	for _, name := range slices.Sorted(maps.Keys(f.byName)) { // the order counts when the queue takes a sample
		n := f.byName[name]
		n.number = len(f.numbered)
		f.numbered = append(f.numbered, n)
		n.class = f.classes.numberOf(n)
	}
	f.present.clear()
	for _, n := range f.listed {
		f.present.add(n.number)
	}
}

// update applies the newest snapshot and state to a node.
func (f *fleet) update(n *node, given Node, now time.Time) {
	s, state := given.Snapshot, given.stateNow()
	if n.reason != given.Reason {
		n.reason, f.log.changed = given.Reason, true
	}
	if n.present && n.state == state && sameSnapshot(n.snap, s) {
		return
	}
	f.log.changed = true
	formerClass := n.class
	n.noteLost(s)
	n.state, n.snap = state, s
	if n.class = f.classes.numberOf(n); !n.present || n.class != formerClass {
		f.log.noteShape(n)
	}
	n.present = true
	clear(n.refused)
	n.read(f.weights)
	f.ledger.joinMachine(n, now)
}

// remove marks a node as no longer part of the fleet.
func (f *fleet) remove(n *node, now time.Time) {
	n.present = false
	f.present.remove(n.number)
	f.log.changed = true
	f.log.noteShape(n)
	f.ledger.markChanged(n.machine)
	f.discard(n, now)
}

// release ends a claim and frees what it holds.
func (f *fleet) release(c *claim, now time.Time) {
	f.ledger.release(c, now)
	f.discard(c.node, now)
}

// discard deletes a node that has left the fleet and holds nothing any more.
func (f *fleet) discard(n *node, now time.Time) {
	if n.present || len(n.claimed) > 0 {
		return
	}
	f.ledger.leaveMachine(n, now)
	delete(f.byName, n.name)
}

// named returns the present nodes among the given names.
func (f *fleet) named(names ...string) []*node {
	var out []*node
	for _, name := range names {
		if n := f.byName[name]; n != nil && n.present {
			out = append(out, n)
		}
	}
	return out
}

// allowedBy returns the present nodes that a request may use by name.
func (f *fleet) allowedBy(s *spec) []*node {
	if s.targetErr != nil {
		return nil
	}
	if s.target.Node != "" {
		return f.named(s.target.Node)
	}
	if allowed := s.constraints.GetAllowedNodes(); len(allowed) > 0 {
		return f.named(allowed...)
	}
	return f.listed
}

// claimCount returns the number of claims on all nodes.
func (f *fleet) claimCount() int {
	sum := 0
	for _, n := range f.byName {
		sum += len(n.claimed)
	}
	return sum
}

// benched returns the ends of the benches of the present nodes, by name.
func (f *fleet) benched(now time.Time) map[string]time.Time {
	out := map[string]time.Time{}
	for _, n := range f.listed {
		if until, ok := n.benchedUntil(now); ok {
			out[n.name] = until
		}
	}
	return out
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
