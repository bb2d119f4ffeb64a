package placement

import (
	"strings"
	"time"

	"switchyard/workflows/names"
)

// view is a node as one request class sees it during a pass.
type view struct {
	*spec
	n       *node
	now     time.Time
	stretch int // 1, or prefetchFactor if the queue may prefetch to the node
}

// gpuSuits reports whether the GPU would do for the request if it were free.
func (v *view) gpuSuits(g gpu) bool {
	return v.need.gpuMB <= g.memoryMB && strings.Contains(g.model, v.need.gpuModel)
}

// gpuFits reports whether the GPU has room for what the request asks of each of its GPUs, and is not in use for gaming.
func (v *view) gpuFits(g gpu) bool {
	return !v.n.now.gaming && v.gpuSuits(g) && v.n.machine.gpuUse(g.index).Fits(v.need.gpuPart, g.memoryMB)
}

// countGPUs returns how many GPUs of the node meet a condition.
func (v *view) countGPUs(meets func(gpu) bool) int {
	n := 0
	for _, g := range v.n.gpus {
		if meets(g) {
			n++
		}
	}
	return n
}

// gpuCapacity reports whether the requested GPUs are free, or the requested part of one.
func (v *view) gpuCapacity() bool {
	return v.need.gpus == 0 || v.countGPUs(v.gpuFits) >= v.need.gpus && len(v.missingGPUs(v.gpuFits)) == 0
}

// numaCapacity reports whether a NUMA node of the machine has enough cores and memory that no
// attempt is bound to. It ignores the kernel's figure for free memory, which leaves out the page
// cache. A machine that reports no NUMA nodes is NUMA node 0, for which the other filters suffice.
func (v *view) numaCapacity(index int) bool {
	if len(v.n.numa) == 0 {
		return index == 0
	}
	for _, p := range v.n.numa {
		if p.index != index {
			continue
		}
		bound := v.n.machine.boundTo(index)
		return bound.milliCores+v.need.milliCores <= p.milliCores && bound.memoryMB+v.need.memoryMB <= p.memoryMB
	}
	return false
}

func (v *view) slotFree(stretch int) bool {
	return v.need.remote || v.n.tasks < v.n.now.slots*stretch
}

// remoteFree reports whether the node can supervise one more remote attempt.
func (v *view) remoteFree() bool { return !v.need.remote || v.n.remotes < names.MaxRemoteAttempts }

func (v *view) coresFree(stretch int) bool {
	return v.need.milliCores == 0 || v.n.now.usedMilli+v.need.milliCores <= v.n.now.milliCores*int64(stretch)
}

// waitsThere reports whether the request would have to wait on the node, in the prefetched part of
// its queue.
func (v *view) waitsThere() bool { return !v.slotFree(1) || !v.coresFree(1) }
