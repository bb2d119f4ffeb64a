package node

import (
	"fmt"
	"maps"
	"slices"

	v1 "switchyard/proto/switchyard/v1"
)

// Size is the total size of a machine.
type Size struct {
	// Cores is the number of logical processors, rounded down to thousandths.
	Cores float64
	// MemoryMB is memory in MiB, rounded down to whole MiB.
	MemoryMB float64
	// GPUs are the GPUs, and MIG devices in the place of the GPUs that are split into them.
	GPUs []GPU
	// NUMA lists the NUMA nodes. It is empty if the machine has only one or does not report them.
	NUMA []NUMASize
}

// GPU is a GPU or a MIG device.
type GPU struct {
	Index int32
	// MemoryMB is its memory in MiB, or 0 if unknown.
	MemoryMB int64
	// MIGUUID is the UUID of a MIG device, or "".
	MIGUUID string
}

// NUMASize is the size of a NUMA node.
type NUMASize struct {
	// Index is the number of the NUMA node.
	Index int32
	// Cores and MemoryMB are local to the NUMA node. Either may be 0.
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

// capacity is a Size in integers.
type capacity struct {
	all  amount
	numa map[int32]amount
	gpus map[int32]int64 // memory in MiB by index
}

func (s Size) capacity() capacity {
	c := capacity{all: floor(s.Cores, s.MemoryMB), numa: map[int32]amount{}, gpus: map[int32]int64{}}
	for _, n := range s.NUMA {
		c.numa[n.Index] = floor(n.Cores, n.MemoryMB)
	}
	for _, gpu := range s.GPUs {
		c.gpus[gpu.Index] = gpu.MemoryMB
	}
	return c
}

// numaNode returns the size of a NUMA node. A machine that reports no NUMA nodes has the single
// NUMA node 0.
func (c capacity) numaNode(index int32) (amount, bool) {
	if len(c.numa) == 0 && index == 0 {
		return c.all, true
	}
	a, ok := c.numa[index]
	return a, ok
}

// lacks returns what the machine lacks for a need even if nothing is reserved, or "" if it lacks
// nothing.
func (c capacity) lacks(u units) string {
	if !u.amount.fits(amount{}, c.all) {
		return fmt.Sprintf("it has %s", c.all)
	}
	for _, gpu := range u.gpus {
		memory, ok := c.gpus[gpu]
		switch {
		case len(c.gpus) == 0:
			return fmt.Sprintf("no GPU %d, nor any other", gpu)
		case !ok:
			return fmt.Sprintf("no GPU %d, only %s", gpu, list(slices.Sorted(maps.Keys(c.gpus))))
		case !(v1.GPUUse{}).Fits(u.part, memory):
			return fmt.Sprintf("its GPU %d has %d MiB", gpu, memory)
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
