package placement

import "time"

// ledger accounts for what attempts hold on the machines of the fleet: the claims that this queue
// has placed, and the foreign attempts that only snapshots show.
type ledger struct {
	settle   time.Duration // how long snapshots may still show a released claim
	machines map[string]*machine
	changed  []*machine // machines to recount, because a snapshot has changed or a node has left
	foreign  map[claimKey]*node
	accounts *accounts
	log      *fleetLog
}

func newLedger(settle time.Duration, accounts *accounts, log *fleetLog) *ledger {
	return &ledger{settle: settle, accounts: accounts, machines: map[string]*machine{}, foreign: map[claimKey]*node{}, log: log}
}

// occupy charges a node for a claim on it. The claim's account is not charged.
func (c *claim) occupy() {
	m := c.node.machine
	c.node.hold(c)
	m.unseenMB += c.grant.memoryMB
	m.charge(&m.holds, c.grant)
}

// vacate undoes occupy.
func (c *claim) vacate() {
	m := c.node.machine
	if !c.seen {
		m.unseenMB -= c.grant.memoryMB
	}
	m.discharge(&m.holds, c.grant)
	c.node.withdraw(c)
}

// bill charges the account of a claim that occupies a node.
func (l *ledger) bill(c *claim) { l.accounts.hold(c.account, quantityOf(c.grant), c.assignedAt) }

// release frees what a claim holds. A late snapshot may still show the claim.
func (l *ledger) release(c *claim, now time.Time) {
	c.vacate()
	l.accounts.release(c.account, quantityOf(c.grant), now)
	c.node.noteEnded(c, now)
	l.noteRoom(c.node.machine)
}

// lift temporarily removes what a claim holds. The returned function restores it.
func (l *ledger) lift(c *claim) (restore func()) {
	n, m, g := c.node, c.node.machine, c.grant
	held, sum := n.claimed, &m.holds
	if c.isForeign {
		held, sum = n.foreign, &m.foreign
	}
	unseen := int64(0)
	if !c.seen {
		unseen = g.memoryMB
	}
	delete(held, c.key)
	n.leave(c.key.run, g)
	m.unseenMB -= unseen
	m.discharge(sum, g)
	return func() {
		held[c.key] = c
		n.enter(c.key.run, g)
		m.unseenMB += unseen
		m.charge(sum, g)
	}
}

// noteRoom makes the next pass look at all nodes of the machine again.
func (l *ledger) noteRoom(m *machine) {
	for _, n := range m.nodes {
		l.log.noteRoom(n)
	}
}

// joinMachine adds the node to the machine that its snapshot names, and marks that machine for a recount.
func (l *ledger) joinMachine(n *node, now time.Time) {
	m := l.machineOf(n)
	if m != n.machine {
		if n.machine != nil {
			l.leaveMachine(n, now)
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
func (l *ledger) leaveMachine(n *node, now time.Time) {
	m := n.machine
	l.dropForeign(n, now)
	m.removeNode(n)
	if len(m.nodes) == 0 {
		delete(l.machines, m.id)
	}
	l.markChanged(m)
}

// dropForeign forgets the foreign attempts of a node.
func (l *ledger) dropForeign(n *node, now time.Time) {
	for key, c := range n.foreign {
		l.accounts.release(c.account, quantityOf(c.grant), now)
		delete(l.foreign, key)
	}
	clear(n.foreign)
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
		l.dropForeign(n, now)
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
