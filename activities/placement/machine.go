package placement

import (
	"slices"
	"strings"
	"time"
)

// machine is what nodes of one machine share.
type machine struct {
	id       string
	nodes    []*node // also those that have left and still hold something
	holds    amount  // of attempts that this queue has placed
	foreign  amount  // of attempts that it has not placed
	unseenMB int64   // memory of assignments that no snapshot shows yet
	gpus     []int   // attempts that hold a GPU, by index; two only where something is wrong
	numa     []amount
	changed  bool // in the list of machines to count again
}

// charge adds what an attempt holds to a sum of the machine.
func (m *machine) charge(sum *amount, g grant) {
	sum.add(g)
	for _, index := range g.gpus {
		for len(m.gpus) <= int(index) {
			m.gpus = append(m.gpus, 0)
		}
		m.gpus[index]++
	}
	if g.numa != noNUMA {
		for len(m.numa) <= g.numa {
			m.numa = append(m.numa, amount{})
		}
		m.numa[g.numa].add(g)
	}
	m.spread()
}

// discharge is the inverse of charge.
func (m *machine) discharge(sum *amount, g grant) {
	sum.sub(g)
	for _, index := range g.gpus {
		m.gpus[index]--
	}
	if g.numa != noNUMA {
		m.numa[g.numa].sub(g)
	}
	m.spread()
}

// spread gives the nodes of the machine what is held of it. Of the memory, no
// more is free than is really there once the assignments have started that no
// snapshot shows yet.
func (m *machine) spread() {
	for _, n := range m.nodes {
		n.now.usedMilli = m.holds.milliCores + m.foreign.milliCores
		n.now.freeMB = min(
			n.now.memoryMB-m.holds.memoryMB-m.foreign.memoryMB,
			int64(n.now.availableMB)-m.unseenMB,
		)
	}
}

func (m *machine) boundTo(numa int) amount {
	if numa < len(m.numa) {
		return m.numa[numa]
	}
	return amount{}
}

func (m *machine) gpuFree(index int32) bool { return int(index) >= len(m.gpus) || m.gpus[index] == 0 }

func (q *Queue) machineOf(n *node) *machine {
	// A node that does not name its machine is one. The prefix keeps it from
	// sharing with a machine of that name.
	id := "machine " + n.snap.GetMachine()
	if n.snap.GetMachine() == "" {
		id = "node " + n.name
	}
	m := q.machines[id]
	if m == nil {
		m = &machine{id: id}
		q.machines[id] = m
	}
	return m
}

// join puts the node on the machine that its snapshot names.
func (q *Queue) join(n *node) {
	m := q.machineOf(n)
	if m == n.machine {
		return
	}
	if n.machine != nil {
		q.part(n)
	}
	n.machine = m
	m.nodes = append(m.nodes, n)
}

// part takes the node off its machine.
func (q *Queue) part(n *node) {
	m := n.machine
	for key := range n.foreign {
		delete(q.foreign, key)
	}
	m.nodes = slices.DeleteFunc(m.nodes, func(o *node) bool { return o == n })
	if len(m.nodes) == 0 {
		delete(q.machines, m.id)
	}
	q.recount(m)
}

func (q *Queue) recount(m *machine) {
	if !m.changed {
		m.changed = true
		q.uncounted = append(q.uncounted, m)
	}
}

// count works out from the snapshots all that is held of a machine, and has
// everything look at its nodes again.
func (q *Queue) count(m *machine, now time.Time) {
	m.changed = false
	m.holds, m.foreign, m.unseenMB = amount{}, amount{}, 0
	clear(m.gpus)
	clear(m.numa)
	for _, n := range m.nodes {
		for key := range n.foreign {
			delete(q.foreign, key)
		}
		clear(n.foreign)
		clear(n.perRun)
		n.tasks, n.remotes = 0, 0
		for key, r := range n.claimed {
			n.enter(key.run, r.grant)
			r.seen = false
			m.charge(&m.holds, r.grant)
		}
	}
	q.countForeign(m, now)
	for _, n := range m.nodes {
		for _, r := range n.claimed {
			if !r.seen {
				m.unseenMB += r.grant.memoryMB
			}
		}
		q.touch(n)
	}
	m.spread()
}

// heldBeside returns which other nodes of the machine hold how much of it, for people, or "" if none holds anything.
func (n *node) heldBeside(figure func(amount) string) string {
	var parts []string
	for _, o := range n.machine.nodes {
		if o == n {
			continue
		}
		var held amount
		for _, r := range o.claimed {
			held.add(r.grant)
		}
		for _, g := range o.foreign {
			held.add(g)
		}
		if text := figure(held); text != figure(amount{}) {
			parts = append(parts, o.name+" holds "+text)
		}
	}
	if len(parts) == 0 {
		return ""
	}
	slices.Sort(parts)
	return " (on the same machine " + strings.Join(parts, ", ") + ")"
}
