package node

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
)

// Need is what an attempt takes from a machine while it runs.
type Need struct {
	// Cores is a number of CPU cores, rounded up to thousandths.
	Cores float64
	// MemoryMB is memory in MiB, rounded up to whole MiB.
	MemoryMB float64
	// GPUs are the indices of the GPUs that the attempt gets.
	GPUs []int32
	// GPUPart is what it gets of its one GPU, or nil if no other attempt gets any part of its GPUs.
	GPUPart *v1.GpuPart
	// NUMA is the NUMA node that provides the cores and the memory, or nil for any.
	NUMA *int32
	// Remote is set if the attempt runs outside of the machine and takes no slot. The other fields are empty in
	// that case.
	Remote bool
}

// String returns a text for messages, such as "2 cores, 512 MiB, GPUs 0, 1" or "2 cores, 512 MiB, GPUs 0 (0.5 of it, 0 MiB)".
func (n Need) String() string {
	s := fmt.Sprintf("%g cores, %g MiB", n.Cores, n.MemoryMB)
	if len(n.GPUs) > 0 {
		s += ", GPUs " + list(n.GPUs)
	}
	if n.GPUPart != nil {
		s += fmt.Sprintf(" (%g of it, %d MiB)", n.GPUPart.Share(), n.GPUPart.GetMemoryMb())
	}
	if n.NUMA != nil {
		s += fmt.Sprintf(", on NUMA node %d", *n.NUMA)
	}
	return s
}

func list(indices []int32) string {
	words := make([]string, len(indices))
	for i, index := range indices {
		words[i] = strconv.Itoa(int(index))
	}
	return strings.Join(words, ", ")
}

// amount holds cores and memory as integers, whose sums are exact.
type amount struct {
	milliCores, memoryMB int64
}

func (a amount) plus(b amount) amount {
	return amount{a.milliCores + b.milliCores, a.memoryMB + b.memoryMB}
}

func (a amount) minus(b amount) amount {
	return amount{a.milliCores - b.milliCores, a.memoryMB - b.memoryMB}
}

// fits reports whether a fits into what taken leaves of whole. A resource that a does not ask for is ignored, even
// if it is overcommitted.
func (a amount) fits(taken, whole amount) bool {
	return (a.milliCores == 0 || taken.milliCores+a.milliCores <= whole.milliCores) &&
		(a.memoryMB == 0 || taken.memoryMB+a.memoryMB <= whole.memoryMB)
}

func (a amount) need() Need {
	return Need{Cores: float64(a.milliCores) / 1000, MemoryMB: float64(a.memoryMB)}
}

// String returns a text for messages, such as "2 cores, 512 MiB".
func (a amount) String() string { return a.need().String() }

func floor(cores, memoryMB float64) amount {
	return amount{whole(math.Floor(max(cores, 0) * 1000)), whole(math.Floor(max(memoryMB, 0)))}
}

// whole converts x to an integer, clamped so that sums cannot overflow.
func whole(x float64) int64 { return int64(min(x, 1<<50)) }

// units is a Need in integers.
type units struct {
	amount
	gpus   []int32     // in ascending order
	part   *v1.GpuPart // of the one GPU; nil for whole ones
	numa   *int32
	remote bool
}

func (n Need) units() (units, error) {
	gpus := slices.Sorted(slices.Values(n.GPUs))
	twice := len(slices.Compact(slices.Clone(gpus))) < len(gpus)
	share, memory := n.GPUPart.GetThousandths(), n.GPUPart.GetMemoryMb()
	badPart := n.GPUPart != nil && (len(gpus) != 1 || share < 0 || memory < 0 || share+memory == 0)
	// The negation also rejects NaN.
	if !(n.Cores >= 0 && n.MemoryMB >= 0) || twice || badPart {
		return units{}, fmt.Errorf("a need of %s is invalid", n)
	}
	// Decimal fractions are not exact: 1.1 cores must not become 1101 thousandths.
	const slack = 1e-6
	u := units{gpus: gpus, part: n.GPUPart, remote: n.Remote, amount: amount{
		milliCores: whole(math.Ceil(n.Cores*1000 - slack)),
		memoryMB:   whole(math.Ceil(n.MemoryMB - slack)),
	}}
	if n.NUMA != nil {
		index := *n.NUMA
		u.numa = &index
	}
	return u, nil
}

func (u units) need() Need {
	n := u.amount.need()
	n.GPUs, n.GPUPart, n.Remote = slices.Clone(u.gpus), u.part, u.remote
	if u.numa != nil {
		index := *u.numa
		n.NUMA = &index
	}
	return n
}
