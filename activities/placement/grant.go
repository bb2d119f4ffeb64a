package placement

import (
	"cmp"
	"slices"
)

// grant is what an attempt holds of a machine.
type grant struct {
	milliCores int64
	memoryMB   int64
	gpus       []int32 // indices, sorted
	numa       int     // NUMA node that cores and memory are of, or noNUMA
	remote     bool    // it runs outside of the machine, and holds nothing of it
}

// gpu is a GPU of a node.
type gpu struct {
	index int32
	numa  int // or noNUMA when it is not known
}

// gpuGroup are free GPUs of one NUMA node, by index.
type gpuGroup struct {
	numa int
	free []int32
}

// choose picks what the request gets of the node, which has room for it: GPUs
// that were asked for by index, then GPUs that are near to each other and to
// the cores. It is bound to a NUMA node when it asks for one, or when all its
// GPUs are on one that has the cores and the memory too.
func (v *view) choose() grant {
	g := grant{milliCores: v.need.milliCores, memoryMB: v.need.memoryMB, numa: v.need.numa, remote: v.need.remote}
	if v.need.gpus == 0 {
		return g
	}
	for _, index := range v.target.GPUIndices {
		g.gpus = append(g.gpus, int32(index))
	}
	rest := v.need.gpus - len(g.gpus)
	groups := v.freeGroups(g.gpus)
	switch near := v.bestGroup(groups, rest); {
	case rest == 0:
	case v.need.numa != noNUMA:
		slices.SortStableFunc(groups, func(a, b gpuGroup) int {
			return last(a.numa != v.need.numa, b.numa != v.need.numa)
		})
		g.take(groups, rest)
	case near != nil:
		g.gpus = append(g.gpus, near.free[:rest]...)
	default:
		g.take(groups, rest)
	}
	slices.Sort(g.gpus)
	if g.numa == noNUMA {
		g.numa = v.commonNUMA(g.gpus)
	}
	return g
}

// take adds GPUs of the groups, in their order.
func (g *grant) take(groups []gpuGroup, n int) {
	for _, group := range groups {
		k := min(n, len(group.free))
		g.gpus = append(g.gpus, group.free[:k]...)
		n -= k
	}
}

// freeGroups returns the free GPUs of the node but for some, by NUMA node, the
// largest group first, so that taking them in order touches the fewest NUMA nodes.
func (v *view) freeGroups(but []int32) []gpuGroup {
	var groups []gpuGroup
	for _, g := range v.n.gpus {
		if !v.gpuFree(g.index) || slices.Contains(but, g.index) {
			continue
		}
		i := slices.IndexFunc(groups, func(o gpuGroup) bool { return o.numa == g.numa })
		if i < 0 {
			i = len(groups)
			groups = append(groups, gpuGroup{numa: g.numa})
		}
		groups[i].free = append(groups[i].free, g.index)
	}
	slices.SortStableFunc(groups, func(a, b gpuGroup) int { return cmp.Compare(len(b.free), len(a.free)) })
	return groups
}

// bestGroup returns the group that n GPUs are best taken of, nil when none has
// so many: one with room for the cores and the memory before one without, then
// the smallest, which leaves the larger ones whole.
func (v *view) bestGroup(groups []gpuGroup, n int) *gpuGroup {
	var best *gpuGroup
	room := func(g *gpuGroup) bool { return v.numaCapacity(g.numa) }
	for i := range groups {
		g := &groups[i]
		if len(g.free) < n {
			continue
		}
		if best == nil || cmp.Or(last(!room(g), !room(best)), cmp.Compare(len(g.free), len(best.free))) < 0 {
			best = g
		}
	}
	return best
}

// commonNUMA is the NUMA node that all the GPUs are on and that has room for the
// cores and the memory, or noNUMA.
func (v *view) commonNUMA(gpus []int32) int {
	common := noNUMA
	for i, index := range gpus {
		at := slices.IndexFunc(v.n.gpus, func(g gpu) bool { return g.index == index })
		if at < 0 || i > 0 && v.n.gpus[at].numa != common {
			return noNUMA
		}
		common = v.n.gpus[at].numa
	}
	if !v.numaCapacity(common) {
		return noNUMA
	}
	return common
}
