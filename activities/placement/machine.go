package placement

import (
	"slices"
	"strings"
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
	changed  bool // listed in ledger.changed
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

// discharge undoes charge.
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

// removeNode removes a node from the machine.
func (m *machine) removeNode(n *node) {
	m.nodes = slices.DeleteFunc(m.nodes, func(o *node) bool { return o == n })
}

// reset clears all sums.
func (m *machine) reset() {
	m.holds, m.foreign, m.unseenMB = amount{}, amount{}, 0
	clear(m.gpus)
	clear(m.numa)
}

// heldBeside returns text for people about what the other nodes of the machine hold, or "" if they hold nothing.
func (n *node) heldBeside(figure func(amount) string) string {
	var parts []string
	for _, o := range n.machine.nodes {
		if o == n {
			continue
		}
		var held amount
		for _, c := range o.claimed {
			held.add(c.grant)
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
