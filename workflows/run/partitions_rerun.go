package run

import (
	"errors"
	"fmt"
	"slices"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/names"
)

// To requeue instances of a large fan-out whose partition has ended, the run opens the partition again under the same workflow
// ID. The partition continues from the status that it left.

// errOpenPartition means that an open child of the run holds the instance; the caller must ask the child.
var errOpenPartition = errors.New("a partition of the run has it")

// instance returns the large fan-out that an instance belongs to, and the instance's number. The fan-out is nil if
// there is none.
func (ps *partitions) instance(name string) (*partitionedFanOut, int) {
	task, number, ok := names.ParseInstanceName(name)
	if !ok {
		return nil, 0
	}
	i, ok := ps.graph.Index(task)
	m := ps.of(i)
	if !ok || m == nil || number >= m.total {
		return nil, 0
	}
	return m, number
}

// mayRequeue returns why an instance of a large fan-out cannot be requeued, or nil if it can.
func (ps *partitions) mayRequeue(m *partitionedFanOut, number int) error {
	name := names.InstanceName(ps.graph.Name(m.task), number)
	p := m.partition(number)
	switch {
	case ps.core.Over():
		return refuse(names.RunEndedError, errJustEnded)
	case ps.commands.isCancelled() || ps.core.Cancelled():
		return refuse(names.TaskStateError, dag.ErrCancelled)
	case p != nil && !p.GetOver():
		return refuse(names.UnknownTaskError, fmt.Errorf("task %q: %w", name, errOpenPartition))
	case p.GetCounts()[v1.TaskDeadLetter] == 0 || slices.Contains(m.requeued, int32(number)):
		return refuse(names.TaskStateError, fmt.Errorf("task %q: %w", name, dag.ErrNotDeadLetter))
	case m.stopped || ps.core.Task(m.task).PendingEnd:
		return refuse(names.TaskStateError, fmt.Errorf("instance %q: %w", name, dag.ErrStopping))
	}
	return nil
}

// requeue queues the partition of an instance for opening and resumes its task if the task has ended.
func (ps *partitions) requeue(m *partitionedFanOut, number int) {
	m.requeued = append(m.requeued, int32(number))
	ps.raise(dag.Requeued{Task: m.task}) // the event of its end may be queued
}

// partitionedTasks separates the names of instances in partitions from the names that the run itself holds. It returns each
// task of such instances once and adds the instances to the task's state.
func partitionedTasks(all []string, tasks map[string]*v1.TaskState) (own, remote []string) {
	for _, name := range all {
		task, number, ok := names.ParseInstanceName(name)
		t := tasks[task]
		if !ok || len(t.GetPartitions()) == 0 {
			own = append(own, name)
			continue
		}
		t.Requeued = append(t.Requeued, int32(number))
		if !slices.Contains(remote, task) {
			remote = append(remote, task)
		}
	}
	return own, remote
}

// deadLettersAmong returns the instances that are dead letters in the state that their partition left.
func deadLettersAmong(all []string, tasks map[string]*v1.TaskState) []string {
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		return tasks[name].GetTask().GetState() != v1.TaskDeadLetter
	})
}
