package run

import (
	"slices"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/definition"
)

// A fan-out that is too large for the run is cut into partitions of consecutive instances. All have the same size, except that
// the last may be smaller.

// batchedPartitions is the factor by which partitions are larger if their instances run in batches.
const batchedPartitions = 10

// isLarge reports whether count instances of a task need children of the run. Tasks that need no node stay with the run, which
// handles their waiting itself.
func (ps *partitions) isLarge(i, count int) bool {
	t := ps.graph.Definition(i).GetType()
	return ps.in.GetPartition() == nil && count > ps.limits.Instances && v1.NeedsNode(t)
}

// expandLarge starts a large fan-out, whose instances run in child workflows.
func (ps *partitions) expandLarge(i, count int) {
	m := newPartitionedFanOut(i, count, ps.partitionSize(i))
	if was := ps.of(i); was != nil && was.total == count {
		m.before, m.requeued, m.partial = was.partitions, was.requeued, len(was.requeued) > 0
		if m.partial && was.countedFailures()-int32(len(m.requeued)) > ps.core.Definition(i).GetMaxFailures() {
			m.halt(v1.ReasonMaxFailures)
		}
	}
	ps.fanOuts = append(slices.DeleteFunc(ps.fanOuts, func(m *partitionedFanOut) bool { return m.task == i }), m)
	ps.show(m, map[string]int32{v1.TaskPending: int32(count)})
	ps.raise(dag.Expanded{Task: i, Count: count, Partitioned: true})
}

// partitionSize returns the number of instances in a partition of task i.
func (ps *partitions) partitionSize(i int) int {
	if size, auto := definition.BatchOf(ps.core.Definition(i)); size > 1 || auto {
		return ps.limits.PartitionInstances * batchedPartitions
	}
	return ps.limits.PartitionInstances
}

// partitionEnd returns the number after that of the last instance of the partition with index k.
func (m *partitionedFanOut) partitionEnd(k int) int { return min((k+1)*m.size, m.total) }
