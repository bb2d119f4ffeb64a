package placement

import (
	"slices"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
)

// machine holds what the nodes of one machine share.
type machine struct {
	id       string
	nodes    []*node     // includes nodes that have left but still hold something
	holds    amount      // by attempts that this queue has placed
	foreign  amount      // by attempts that another queue has placed
	unseenMB int64       // memory of assignments that no snapshot shows yet
	gpus     []v1.GPUUse // what attempts hold of each GPU, by index
	numa     []amount
	changed  bool // listed in ledger.changed
	// reservation is held on one of the machine's nodes, or nil.
	reservation *reservation
}

// charge adds what an attempt holds to one of the machine's sums.
func (m *machine) charge(sum *amount, g grant) {
	sum.add(g)
	for _, index := range g.gpus {
		for len(m.gpus) <= int(index) {
			m.gpus = append(m.gpus, v1.GPUUse{})
		}
		m.gpus[index].Add(g.gpuPart)
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
		m.gpus[index].Remove(g.gpuPart)
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

// changeAvailable changes the memory that the nodes of the machine have measured as available.
func (m *machine) changeAvailable(memoryMB int64) {
	for _, n := range m.nodes {
		n.now.availableMB += float64(memoryMB)
	}
	m.spread()
}

func (m *machine) boundTo(numa int) amount {
	if numa < len(m.numa) {
		return m.numa[numa]
	}
	return amount{}
}

// gpuUse returns what attempts hold of a GPU.
func (m *machine) gpuUse(index int32) v1.GPUUse {
	if int(index) < len(m.gpus) {
		return m.gpus[index]
	}
	return v1.GPUUse{}
}

// firstPresent returns the first node of the machine that is present, or nil.
func (m *machine) firstPresent() *node {
	for _, n := range m.nodes {
		if n.present {
			return n
		}
	}
	return nil
}

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
		for _, c := range o.foreign {
			held.add(c.grant)
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
