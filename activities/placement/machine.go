package placement

import (
	"slices"
	"strings"
	"time"
)

// machine holds what the nodes of one machine share.
type machine struct {
	id       string
	nodes    []*node // includes nodes that have left but still hold something
	holds    amount  // by attempts that this queue has placed
	foreign  amount  // by attempts that another queue has placed
	unseenMB int64   // memory of assignments that no snapshot shows yet
	gpus     []int   // number of attempts that hold each GPU, by index; more than one is an error
	numa     []amount
	changed  bool // listed in Queue.uncounted
}

// charge adds what an attempt holds to one of the machine's sums.
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

// spread updates the free resources of the machine's nodes. Free memory is limited to the memory available in the
// snapshot minus the memory of assignments that no snapshot shows yet.
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
	// A node that does not name its machine is a machine of its own. The prefix keeps its id apart from a machine of
	// the same name.
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

// join adds the node to the machine that its snapshot names.
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

// part removes the node from its machine.
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

// count recomputes from the snapshots everything that is held on a machine, and makes every class look at its nodes
// again.
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

// heldBeside returns text for people about what the other nodes of the machine hold, or "" if they hold nothing.
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
