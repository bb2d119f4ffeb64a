package placement

import (
	"cmp"
	"slices"
	"strings"

	v1 "switchyard/proto/switchyard/v1"
)

// grant is what an attempt holds of a machine's resources.
type grant struct {
	milliCores int64
	memoryMB   int64
	gpus       []int32     // indices in ascending order
	gpuPart    *v1.GpuPart // what it holds of its one GPU; nil if its GPUs are whole
	numa       int         // NUMA node of the cores and the memory, or noNUMA
	remote     bool        // runs outside of the machine and holds none of its resources
}

// gpu is one GPU of a node, or one MIG device.
type gpu struct {
	index    int32
	numa     int    // noNUMA if unknown
	memoryMB int64  // 0 if unknown
	model    string // folded
}

// modelSeparators removes what does not count in the name of a GPU.
var modelSeparators = strings.NewReplacer(" ", "", "-", "")

// foldModel returns the name or the model of a GPU in the form in which both are compared.
func foldModel(name string) string { return modelSeparators.Replace(strings.ToLower(name)) }

// gpuGroup is the set of free GPUs on one NUMA node, by index.
type gpuGroup struct {
	numa int
	free []int32
}

// choose picks the resources for a request from a node that has room for it. It takes the GPUs that
// the request names by index first, then GPUs that are near to each other and to the cores. The
// grant is bound to a NUMA node if the request asks for one, or if all its GPUs are on a NUMA node
// that also has room for the cores and the memory.
func (v *view) choose() grant {
	g := grant{milliCores: v.need.milliCores, memoryMB: v.need.memoryMB, gpuPart: v.need.gpuPart, numa: v.need.numa, remote: v.need.remote}
	if v.need.gpus == 0 {
		return g
	}
	if v.need.gpuPart != nil {
		g.gpus = []int32{v.fullestGPU()}
		if g.numa == noNUMA {
			g.numa = v.commonNUMA(g.gpus)
		}
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
			return compareBool(a.numa != v.need.numa, b.numa != v.need.numa)
		})
		g.addGPUs(groups, rest)
	case near != nil:
		g.gpus = append(g.gpus, near.free[:rest]...)
	default:
		g.addGPUs(groups, rest)
	}
	slices.Sort(g.gpus)
	if g.numa == noNUMA {
		g.numa = v.commonNUMA(g.gpus)
	}
	return g
}

// fullestGPU returns the GPU with the least room that still has room for the requested part, so that other GPUs stay whole. It
// prefers a GPU on the requested NUMA node, and one that is in use already. The request must fit the node.
func (v *view) fullestGPU() int32 {
	best := slices.MinFunc(slices.DeleteFunc(slices.Clone(v.n.gpus), func(g gpu) bool { return !v.gpuFits(g) }), func(a, b gpu) int {
		x, y := v.n.machine.gpuUse(a.index), v.n.machine.gpuUse(b.index)
		return cmp.Or(
			compareBool(v.need.numa != noNUMA && a.numa != v.need.numa, v.need.numa != noNUMA && b.numa != v.need.numa),
			compareBool(x == v1.GPUUse{}, y == v1.GPUUse{}),
			cmp.Compare(x.Free(), y.Free()),
			cmp.Compare(a.memoryMB-x.MemoryMB, b.memoryMB-y.MemoryMB),
		)
	})
	return best.index
}

// addGPUs adds n GPUs from the groups, in the order of the groups.
func (g *grant) addGPUs(groups []gpuGroup, n int) {
	for _, group := range groups {
		k := min(n, len(group.free))
		g.gpus = append(g.gpus, group.free[:k]...)
		n -= k
	}
}

// freeGroups returns the free GPUs of the node other than but, grouped by NUMA node. The largest
// group comes first, so that taking GPUs in order touches the fewest NUMA nodes.
func (v *view) freeGroups(but []int32) []gpuGroup {
	var groups []gpuGroup
	for _, g := range v.n.gpus {
		if !v.gpuFits(g) || slices.Contains(but, g.index) {
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

// bestGroup returns the best group to take n GPUs from, or nil if no group has that many. It
// prefers a group with room for the cores and the memory, and then the smallest group, to leave the
// larger ones whole.
func (v *view) bestGroup(groups []gpuGroup, n int) *gpuGroup {
	var best *gpuGroup
	room := func(g *gpuGroup) bool { return v.numaCapacity(g.numa) }
	for i := range groups {
		g := &groups[i]
		if len(g.free) < n {
			continue
		}
		if best == nil || cmp.Or(compareBool(!room(g), !room(best)), cmp.Compare(len(g.free), len(best.free))) < 0 {
			best = g
		}
	}
	return best
}

// commonNUMA returns the NUMA node that all the GPUs share and that has room for the cores and the
// memory, or noNUMA.
func (v *view) commonNUMA(gpus []int32) int {
	common := noNUMA
	for i, index := range gpus {
		at := slices.IndexFunc(v.n.gpus, func(g gpu) bool { return g.index == index })
		if at < 0 || i > 0 && v.n.gpus[at].numa != common {
			return noNUMA
		}
		common = v.n.gpus[at].numa
	}
	if len(v.n.numa) == 0 || !v.numaCapacity(common) {
		return noNUMA
	}
	return common
}

// compareBool orders false before true.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}
