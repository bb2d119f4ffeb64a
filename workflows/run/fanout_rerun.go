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

// Instances of a large fan-out whose partition is over are requeued by opening the partition once more, under the same workflow
// id: it continues from the status that it has left.

// errOpenPartition: the instance is with a child that is open, and which is to be asked.
var errOpenPartition = errors.New("a child of the run carries it through")

// partitionedInstance is the large fan-out that an instance is of, and its number; nil: it is of none.
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

// partition is the one that an instance is in; nil: it was never opened.
func (m *partitionedFanOut) partition(number, size int) *v1.PartReport {
	if k := number / size; k < len(m.partitions) {
		return m.partitions[k]
	}
	return nil
}

// mayRequeueInstance returns why an instance of a large fan-out cannot be requeued, or nil.
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

// requeueInstance has the partition of an instance opened again, and its task continue if it has ended.
func (r *run) requeueInstance(m *partitionedFanOut, number int) {
	m.requeued = append(m.requeued, int32(number))
	r.events = append(r.events, dag.Requeued{Task: m.task}) // the event of its end may be queued
}

// requeuedIn returns those of the instances from a number up to another that are to be requeued.
func (m *partitionedFanOut) requeuedIn(from, to int) (back []int32) {
	for _, n := range m.requeued {
		if from <= int(n) && int(n) < to {
			back = append(back, n)
		}
	}
	return back
}

// hasRequeued reports whether some of the instances from a number up to another are to be requeued.
func (m *partitionedFanOut) hasRequeued(from, to int) bool { return len(m.requeuedIn(from, to)) > 0 }

// dropRequeued takes the instances from a number up to another out of those that are to be requeued.
func (m *partitionedFanOut) dropRequeued(from, to int) {
	m.requeued = slices.DeleteFunc(m.requeued, func(n int32) bool { return from <= int(n) && int(n) < to })
}

// keeps reports whether a partition stays as it was when the task continues for the sake of instances of others.
func (m *partitionedFanOut) keeps(before *v1.PartReport, back bool) bool {
	return m.partial && !back && (m.halted || before.GetCounts()[v1.TaskSkipped] == 0)
}

// reopens reports whether a partition that is over has instances that may start after all.
func (r *run) reopens(m *partitionedFanOut, p *v1.PartReport) bool {
	return p.GetOver() && !m.halted && p.GetCounts()[v1.TaskSkipped] > 0
}

// reopenPartitions opens partitions once more in which something was requeued or may start after all, while their task runs.
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
		p := &v1.PartReport{
			Task: was.GetTask(), From: was.GetFrom(), Slot: int32(slot), Generation: r.in.GetGeneration(), Chain: r.chain,
			Counts: maps.Clone(was.GetCounts()), Revision: was.GetRevision(), Pace: was.GetPace(),
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

// partitionedTasks separates the instances of partitions among some names from what the run itself has. Their tasks
// are named once, and note which instances it is about.
func partitionedTasks(all []string, tasks map[string]*v1.TaskCarry) (own, remote []string) {
	for _, name := range all {
		task, number, ok := names.ParseInstanceName(name)
		t := tasks[task]
		if !ok || len(t.GetParts()) == 0 {
			own = append(own, name)
			continue
		}
		t.PutBack = append(t.PutBack, int32(number))
		if !slices.Contains(remote, task) {
			remote = append(remote, task)
		}
	}
	return own, remote
}

// deadLettersAmong are those of some instances of a partition that are dead letters in what it has left.
func deadLettersAmong(all []string, tasks map[string]*v1.TaskCarry) []string {
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		return tasks[name].GetTask().GetState() != v1.TaskDeadLetter
	})
}
