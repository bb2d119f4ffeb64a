package node

import (
	"fmt"
	"maps"
	"slices"
)

// Size is what a machine has in all.
type Size struct {
	// Cores are logical processors; parts of a thousandth do not count.
	Cores float64
	// MemoryMB is memory in MiB; parts of one do not count.
	MemoryMB float64
	// GPUs are the indices of its GPUs.
	GPUs []int32
	// NUMA are its NUMA nodes; none when it has only one, or does not report them.
	NUMA []NUMASize
}

// NUMASize is what a NUMA node has.
type NUMASize struct {
	// Index of the NUMA node.
	Index int32
	// Cores and MemoryMB are those of its own; there are nodes without one of them.
	Cores    float64
	MemoryMB float64
}

func (s Size) clone() Size {
	s.GPUs, s.NUMA = slices.Clone(s.GPUs), slices.Clone(s.NUMA)
	return s
}

func (s Size) equal(o Size) bool {
	return s.Cores == o.Cores && s.MemoryMB == o.MemoryMB && slices.Equal(s.GPUs, o.GPUs) && slices.Equal(s.NUMA, o.NUMA)
}

// capacity is a Size in whole numbers.
type capacity struct {
	all  amount
	numa map[int32]amount
	gpus map[int32]bool
}

func (s Size) capacity() capacity {
	c := capacity{all: floor(s.Cores, s.MemoryMB), numa: map[int32]amount{}, gpus: map[int32]bool{}}
	for _, n := range s.NUMA {
		c.numa[n.Index] = floor(n.Cores, n.MemoryMB)
	}
	for _, gpu := range s.GPUs {
		c.gpus[gpu] = true
	}
	return c
}

// numaNode returns what a NUMA node has. A machine that reports none is NUMA node 0.
func (c capacity) numaNode(index int32) (amount, bool) {
	if len(c.numa) == 0 && index == 0 {
		return c.all, true
	}
	a, ok := c.numa[index]
	return a, ok
}

// lacks says in words what is missing for a need when nothing is reserved; empty: nothing.
func (c capacity) lacks(u units) string {
	if !u.amount.fits(amount{}, c.all) {
		return fmt.Sprintf("it has %s", c.all)
	}
	for _, gpu := range u.gpus {
		if !c.gpus[gpu] {
			if len(c.gpus) == 0 {
				return fmt.Sprintf("no GPU %d, nor any other", gpu)
			}
			return fmt.Sprintf("no GPU %d, only %s", gpu, list(slices.Sorted(maps.Keys(c.gpus))))
		}
	}
	if u.numa == nil {
		return ""
	}
	node, ok := c.numaNode(*u.numa)
	switch {
	case !ok:
		return fmt.Sprintf("no NUMA node %d", *u.numa)
	case !u.amount.fits(amount{}, node):
		return fmt.Sprintf("its NUMA node %d has %s", *u.numa, node)
	}
	return ""
}
