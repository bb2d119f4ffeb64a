package placement

import "time"

// ledger accounts for what attempts hold on the machines of the fleet: the claims that this queue
// has placed, and the foreign attempts that only snapshots show.
type ledger struct {
	settle   time.Duration // how long snapshots may still show a released claim
	machines map[string]*machine
	changed  []*machine // machines to recount, because a snapshot has changed or a node has left
	foreign  map[claimKey]*node
	log      *fleetLog
}

func newLedger(settle time.Duration, log *fleetLog) *ledger {
	return &ledger{settle: settle, machines: map[string]*machine{}, foreign: map[claimKey]*node{}, log: log}
}

// hold charges a node for a claim on it.
func (l *ledger) hold(c *claim) {
	m := c.node.machine
	c.node.hold(c)
	m.unseenMB += c.grant.memoryMB
	m.charge(&m.holds, c.grant)
}

// release frees what a claim holds. A late snapshot may still show the claim.
func (l *ledger) release(c *claim, now time.Time) {
	n, m := c.node, c.node.machine
	if !c.seen {
		m.unseenMB -= c.grant.memoryMB
	}
	m.discharge(&m.holds, c.grant)
	n.release(c, now)
	l.noteRoom(m)
}

// lift temporarily removes what a claim holds. The returned function restores it.
func (l *ledger) lift(c *claim) (restore func()) {
	n, m, g := c.node, c.node.machine, c.grant
	unseen := int64(0)
	if !c.seen {
		unseen = g.memoryMB
	}
	delete(n.claimed, c.key)
	n.leave(c.key.run, g)
	m.unseenMB -= unseen
	m.discharge(&m.holds, g)
	return func() {
		n.claimed[c.key] = c
		n.enter(c.key.run, g)
		m.unseenMB += unseen
		m.charge(&m.holds, g)
	}
}

// noteRoom makes the next pass look at all nodes of the machine again.
func (l *ledger) noteRoom(m *machine) {
	for _, n := range m.nodes {
		l.log.noteRoom(n)
	}
}

// joinMachine adds the node to the machine that its snapshot names, and marks that machine for a recount.
func (l *ledger) joinMachine(n *node) {
	m := l.machineOf(n)
	if m != n.machine {
		if n.machine != nil {
			l.leaveMachine(n)
		}
		n.machine = m
		m.nodes = append(m.nodes, n)
	}
	l.markChanged(m)
}

func (l *ledger) machineOf(n *node) *machine {
	// A node that does not name its machine is a machine of its own. The prefix keeps its id apart from a machine of
	// the same name.
	id := "machine " + n.snap.GetMachine()
	if n.snap.GetMachine() == "" {
		id = "node " + n.name
	}
	m := l.machines[id]
	if m == nil {
		m = &machine{id: id}
		l.machines[id] = m
	}
	return m
}

// leaveMachine removes the node from its machine.
func (l *ledger) leaveMachine(n *node) {
	m := n.machine
	for key := range n.foreign {
		delete(l.foreign, key)
	}
	m.removeNode(n)
	if len(m.nodes) == 0 {
		delete(l.machines, m.id)
	}
	l.markChanged(m)
}

// markChanged makes the next recount include the machine.
func (l *ledger) markChanged(m *machine) {
	if !m.changed {
		m.changed = true
		l.changed = append(l.changed, m)
	}
}

// recount recomputes from the snapshots everything that is held on the changed machines, and makes
// every class look at their nodes again.
func (l *ledger) recount(now time.Time) {
	for _, m := range l.changed {
		m.changed = false
		l.recountMachine(m, now)
	}
	clear(l.changed)
	l.changed = l.changed[:0]
}

func (l *ledger) recountMachine(m *machine, now time.Time) {
	m.reset()
	for _, n := range m.nodes {
		for key := range n.foreign {
			delete(l.foreign, key)
		}
		n.resetCounts()
		for key, c := range n.claimed {
			n.enter(key.run, c.grant)
			c.seen = false
			m.charge(&m.holds, c.grant)
		}
	}
	l.countForeign(m, now)
	for _, n := range m.nodes {
		for _, c := range n.claimed {
			if !c.seen {
				m.unseenMB += c.grant.memoryMB
			}
		}
		l.log.noteRoom(n)
	}
	m.spread()
}
