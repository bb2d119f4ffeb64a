package run

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/names"
)

// To requeue instances of a large fan-out whose partition has ended, the run opens the partition again under the same workflow
// ID. The partition continues from the status that it left.

// errOpenPartition means that an open child of the run holds the instance; the caller must ask the child.
var errOpenPartition = errors.New("a child of the run carries it through")

// partitionedInstance returns the large fan-out that an instance belongs to, and the instance's number. The fan-out is nil if
// there is none.
func (r *run) partitionedInstance(name string) (*partitionedFanOut, int) {
	task, number, ok := names.ParseInstanceName(name)
	if !ok {
		return nil, 0
	}
	i, ok := r.graph.Index(task)
	m := r.partitionedOf(i)
	if !ok || m == nil || number >= m.total {
		return nil, 0
	}
	return m, number
}

// partition returns the partition that holds an instance, or nil if it was never opened.
func (m *partitionedFanOut) partition(number, size int) *v1.PartitionReport {
	if k := number / size; k < len(m.partitions) {
		return m.partitions[k]
	}
	return nil
}

// mayRequeueInstance returns why an instance of a large fan-out cannot be requeued, or nil if it can.
func (r *run) mayRequeueInstance(m *partitionedFanOut, number int) error {
	name := names.InstanceName(r.graph.Name(m.task), number)
	p := m.partition(number, r.partitionSize(m))
	switch {
	case r.core.Over():
		return refuse(names.RunEndedError, errJustEnded)
	case r.cancelled || r.core.Cancelled():
		return refuse(names.TaskStateError, dag.ErrCancelled)
	case p != nil && !p.GetOver():
		return refuse(names.UnknownTaskError, fmt.Errorf("task %q: %w", name, errOpenPartition))
	case p.GetCounts()[v1.TaskDeadLetter] == 0 || slices.Contains(m.requeued, int32(number)):
		return refuse(names.TaskStateError, fmt.Errorf("task %q: %w", name, dag.ErrNotDeadLetter))
	case m.stopped || r.core.Task(m.task).PendingEnd:
		return refuse(names.TaskStateError, fmt.Errorf("instance %q: %w", name, dag.ErrStopping))
	}
	return nil
}

// requeueInstance queues the partition of an instance for opening and resumes its task if the task has ended.
func (r *run) requeueInstance(m *partitionedFanOut, number int) {
	m.requeued = append(m.requeued, int32(number))
	r.events = append(r.events, dag.Requeued{Task: m.task}) // the event of its end may be queued
}

// requeuedIn returns the requeued instances in the range [from, to).
func (m *partitionedFanOut) requeuedIn(from, to int) (back []int32) {
	for _, n := range m.requeued {
		if from <= int(n) && int(n) < to {
			back = append(back, n)
		}
	}
	return back
}

// hasRequeued reports whether any instance in the range [from, to) is requeued.
func (m *partitionedFanOut) hasRequeued(from, to int) bool { return len(m.requeuedIn(from, to)) > 0 }

// dropRequeued removes the range [from, to) from the requeued instances.
func (m *partitionedFanOut) dropRequeued(from, to int) {
	m.requeued = slices.DeleteFunc(m.requeued, func(n int32) bool { return from <= int(n) && int(n) < to })
}

// keeps reports whether a partition keeps its results while the task continues only for instances of other partitions.
func (m *partitionedFanOut) keeps(before *v1.PartitionReport, back bool) bool {
	return m.partial && !back && (m.halted || before.GetCounts()[v1.TaskSkipped] == 0)
}

// reopens reports whether an ended partition has skipped instances that may now start.
func (r *run) reopens(m *partitionedFanOut, p *v1.PartitionReport) bool {
	return p.GetOver() && !m.halted && p.GetCounts()[v1.TaskSkipped] > 0
}

// reopenPartitions reopens ended partitions of a running task that have requeued instances or skipped ones that may now start.
func (r *run) reopenPartitions(m *partitionedFanOut, size, width, limit int) {
	if m.stopped || r.draining || m.partial {
		return
	}
	for k, was := range m.partitions {
		from, to := int(was.GetFrom()), m.partitionEnd(k, size)
		if !was.GetOver() || m.children[from] != nil || !m.hasRequeued(from, to) && !r.reopens(m, was) {
			continue
		}
		slot := m.freeSlot(width)
		if slot < 0 || r.waitsForChildren(m) {
			return
		}
		o := opening{from: from, to: to, concurrency: m.share(slot, limit, width), before: was, skipped: true}
		input, err := r.partitionInput(m, o)
		if err != nil {
			r.wake()
			return
		}
		p := &v1.PartitionReport{
			Task: was.GetTask(), From: was.GetFrom(), Slot: int32(slot), Generation: r.in.GetGeneration(), Chain: r.chain,
			Counts: maps.Clone(was.GetCounts()), Revision: was.GetRevision(), DurationEstimate: was.GetDurationEstimate(),
		}
		if n := int32(len(m.requeuedIn(from, to))); n > 0 {
			p.Counts[v1.TaskPending] += n
			if p.Counts[v1.TaskDeadLetter] -= n; p.Counts[v1.TaskDeadLetter] <= 0 {
				delete(p.Counts, v1.TaskDeadLetter)
			}
		}
		m.dropRequeued(from, to)
		m.partitions[k] = p
		r.openPartition(m, o, input)
		r.reported(m)
	}
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
