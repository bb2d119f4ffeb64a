package fanout

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

// IsLarge reports whether count instances of a task need children of the run. Tasks that need no node stay with the run, which
// handles their waiting itself.
func (c Config) IsLarge(task *v1.TaskDefinition, count int) bool {
	return c.Input.GetPartition() == nil && count > c.Limits.Instances && v1.NeedsNode(task.GetType())
}

// Expand starts a large fan-out, whose instances run in child workflows.
func (s *State) Expand(task, count int) []Effect {
	m := newFanOut(task, count, s.partitionSize(task))
	if was := s.of(task); was != nil && was.total == count {
		m.before, m.requeued, m.partial = was.partitions, was.requeued, len(was.requeued) > 0
		if m.partial && was.countedFailures()-int32(len(m.requeued)) > s.maxFailures(m) {
			m.halt(v1.ReasonMaxFailures)
		}
	}
	s.fanOuts = append(slices.DeleteFunc(s.fanOuts, func(m *fanOut) bool { return m.task == task }), m)
	s.count(m, map[string]int32{v1.TaskPending: int32(count)})
	s.do(Raise{dag.Expanded{Task: task, Count: count, Partitioned: true}})
	return s.take()
}

// RequeuedCount returns the number of instances of a large fan-out that has requeued ones, whose list is not evaluated again, and
// otherwise 0.
func (s *State) RequeuedCount(task int) int {
	if m := s.of(task); m != nil && len(m.requeued) > 0 {
		return m.total
	}
	return 0
}

// partitionSize returns the number of instances in a partition of a task.
func (s *State) partitionSize(task int) int {
	if size, auto := definition.BatchOf(s.core.Definition(task)); size > 1 || auto {
		return s.Limits.PartitionInstances * batchedPartitions
	}
	return s.Limits.PartitionInstances
}
