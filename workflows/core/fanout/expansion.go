package fanout

import (
	"slices"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/definition"
)

// A fan-out that is too large for the run is cut into partitions of consecutive instances. All have the same size, except that
// the last may be smaller.

// batchedPartitions is the factor by which partitions are larger if their instances run in batches.
const batchedPartitions = 10

// isLarge reports whether count instances of a task need children of the run. Tasks that need no node stay with the run, which
// handles their waiting itself.
func isLarge(c flight.Config, task *v1.TaskDefinition, count int) bool {
	return c.Input.GetPartition() == nil && count > c.Limits.Instances && v1.NeedsNode(task.GetType()) && task.GetGang() == nil
}

// Expand determines the number of a task's instances: at once if the definition has the number or the list, or if the task keeps
// the list of requeued instances, and otherwise once an expression is evaluated. A held task waits until [State.Release].
func (s *State) Expand(task int) []Effect {
	def, part := s.core.Definition(task), s.Input.GetPartition()
	parallel, foreach := def.GetParallel(), def.GetForeach()
	switch m := s.of(task); {
	case s.records.Of(task).Held:
		s.held[task] = true
	case m != nil && len(m.requeued) > 0:
		s.partition(task, m.total)
	case part != nil:
		s.setItems(task, part.GetItems())
		s.do(Raise{dag.Expanded{Task: task, From: int(part.GetFrom()), Count: int(part.GetTo() - part.GetFrom())}})
	case foreach.GetListValue() != nil:
		s.expanded(task, len(foreach.GetListValue().GetValues()))
	case foreach != nil:
		s.do(AskItems{task})
	case parallel.GetStringValue() != "":
		s.do(AskCount{task})
	default:
		s.expanded(task, int(parallel.GetNumberValue()))
	}
	return s.take()
}

// Release expands a task that is no longer held, unless it has ended meanwhile.
func (s *State) Release(task int) []Effect {
	if !s.held[task] {
		return nil
	}
	delete(s.held, task)
	if s.core.Task(task).State != v1.TaskPending {
		return nil
	}
	return s.Expand(task)
}

// Counted expands a task whose number or list of instances has been evaluated.
func (s *State) Counted(task int, a *historyv1.ConditionAnswer) []Effect {
	s.setItems(task, a.GetItems())
	if a.GetError() != "" {
		s.do(Raise{dag.Expanded{Task: task, Count: int(a.GetCount()), Err: a.GetError(), Broken: a.GetBroken()}})
	} else {
		s.expanded(task, int(a.GetCount()))
	}
	return s.take()
}

// setItems records the evaluated list of a foreach.
func (s *State) setItems(task int, items *historyv1.Items) {
	if items != nil {
		s.records.At(task).Items = items
	}
}

// expanded starts the instances of a task, in partitions if there are too many for the run.
func (s *State) expanded(task, count int) {
	if isLarge(s.Config, s.core.Definition(task), count) {
		s.partition(task, count)
	} else {
		s.do(Raise{dag.Expanded{Task: task, Count: count}})
	}
}

// partition starts a large fan-out, whose instances run in child workflows.
func (s *State) partition(task, count int) {
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
}

// partitionSize returns the number of instances in a partition of a task.
func (s *State) partitionSize(task int) int {
	if size, auto := definition.BatchOf(s.core.Definition(task)); size > 1 || auto {
		return s.Limits.PartitionInstances * batchedPartitions
	}
	return s.Limits.PartitionInstances
}
