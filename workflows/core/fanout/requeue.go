package fanout

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

// ErrOpenPartition means that an open child of the run holds the instance; the caller must ask the child.
var ErrOpenPartition = errors.New("a partition of the run has it")

// Instance returns the task and the number of an instance of a large fan-out. ok is false if there is no such instance.
func (s *State) Instance(name string) (task, number int, ok bool) {
	group, number, ok := names.ParseInstanceName(name)
	if !ok {
		return 0, 0, false
	}
	task, ok = s.core.Index(group)
	m := s.of(task)
	return task, number, ok && m != nil && number < m.total
}

// MayRequeue returns why an instance of a large fan-out cannot be requeued, or nil if it can.
func (s *State) MayRequeue(task, number int) error {
	m := s.of(task)
	name, p := names.InstanceName(s.core.Name(task), number), m.partition(number)
	switch {
	case s.core.IsCancelled(task):
		return dag.ErrCancelled
	case s.core.InFinally() && !s.core.IsFinally(task):
		return dag.ErrInFinally
	case p != nil && !p.GetOver():
		return fmt.Errorf("task %q: %w", name, ErrOpenPartition)
	case p.GetCounts()[v1.TaskDeadLetter] == 0 || slices.Contains(m.requeued, int32(number)):
		return fmt.Errorf("task %q: %w", name, dag.ErrNotDeadLetter)
	case m.stopped || s.core.Task(task).PendingEnd:
		return fmt.Errorf("instance %q: %w", name, dag.ErrStopping)
	}
	return nil
}

// Requeue queues the partition of an instance for opening and resumes its task if the task has ended.
func (s *State) Requeue(task, number int) []Effect {
	m := s.of(task)
	m.requeued = append(m.requeued, int32(number))
	s.do(Raise{dag.Requeued{Task: task}}) // the event of its end may be queued
	return s.take()
}
