package fanout

import (
	"fmt"
	"maps"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// partitionsAtOnce is the most partitions of a fan-out that are open at the same time.
	partitionsAtOnce = 8
	// claimsOfGeneration is the number of claims reserved for the instances of partitions in each generation of a run, because
	// the run cannot tell how many of them were used.
	claimsOfGeneration = 10_000
)

// Opening is a partition that may open.
type Opening struct {
	Task     int
	From, To int // instances
	// Partition is the partition without what its task depends on: items, views, ends and outputs of ancestors.
	Partition *historyv1.Partition
	Rerun     *historyv1.Rerun // what runs again of a partition that was open before, otherwise nil
	Requeued  []string         // names of requeued instances

	slot     int
	before   *historyv1.PartitionReport // its report from when it was open before, or nil if it never was
	requeued []int32
}

// Next returns the next partition of a large fan-out that may open, or nil if there is none. It skips the ended partitions of
// instances below from. free is how many more child workflows may open. If the caller cannot open the partition, it calls nothing.
// Otherwise it calls Open, and then Next with the end of the partition.
func (s *State) Next(task, from, free int, draining bool) (*Opening, []Effect) {
	o := s.next(s.of(task), from, free, draining)
	return o, s.take()
}

func (s *State) next(m *fanOut, from, free int, draining bool) *Opening {
	parts := (m.total + m.size - 1) / m.size
	limit := int(least(s.core.Definition(m.task).GetConcurrency(), s.Input.GetDefinition().GetMaxParallel()))
	width := min(parts, partitionsAtOnce)
	if limit > 0 {
		width = min(width, limit)
	}
	open := func(from, to, slot int, before *historyv1.PartitionReport, skipped bool) *Opening {
		return s.opening(m, Opening{Task: m.task, From: from, To: to, slot: slot, before: before}, share(slot, limit, width), skipped)
	}
	if k := s.nextReopened(m, from, draining); k >= 0 {
		if slot := m.freeSlot(width); slot >= 0 && !s.waitsForChildren(m, free) {
			was := m.partitions[k]
			return open(int(was.GetFrom()), m.partitionEnd(k), slot, was, true)
		}
	}
	for len(m.partitions) < parts && (!m.halted || m.partial) && !m.stopped && !(draining && len(m.partitions) > 0) {
		slot := m.freeSlot(width)
		if slot < 0 || s.waitsForChildren(m, free) {
			return nil
		}
		from, to := len(m.partitions)*m.size, m.partitionEnd(len(m.partitions))
		before := reportFrom(m.before, from)
		if before.GetOver() && (before.GetCounts()[v1.TaskCompleted] == int32(to-from) || m.isKept(before, m.hasRequeued(from, to))) {
			m.partitions = append(m.partitions, before)
			continue
		}
		if m.halted && before == nil {
			break // nothing new starts
		}
		if before != nil && s.isOpen(s.idOf(before)) {
			return nil // the child has reported its end and has not closed yet
		}
		return open(from, to, slot, before, m.partial && before.GetOver())
	}
	m.partial = m.partial && len(m.partitions) < parts && !m.halted
	if len(m.before) > 0 && len(m.partitions) == parts {
		s.endIfNoneOpen(m) // all of them may be kept
	}
	return nil
}

// nextReopened returns the index of the next ended partition of a running task that has requeued instances, or skipped ones that
// may now start, or -1 if there is none.
func (s *State) nextReopened(m *fanOut, from int, draining bool) int {
	if m.stopped || draining || m.partial {
		return -1
	}
	for k, p := range m.partitions {
		first := int(p.GetFrom())
		if first >= from && p.GetOver() && m.children[first] == nil && (m.hasRequeued(first, m.partitionEnd(k)) || m.canReopen(p)) {
			return k
		}
	}
	return -1
}

// least returns the smaller of two limits; 0 means no limit.
func least(a, b int32) int32 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// share returns a slot's portion of a limit; 0 means no limit.
func share(slot, limit, width int) int32 {
	share := limit / width
	if slot < limit%width {
		share++
	}
	return int32(share)
}

// waitsForChildren reports whether a fan-out cannot open a child workflow now, and shows the wait.
func (s *State) waitsForChildren(m *fanOut, free int) bool {
	waits, r := free <= 0, s.records.At(m.task)
	was := r.Wait
	if r.Wait = ""; waits {
		r.Wait = fmt.Sprintf("waits: the run has reached the limit of %d open child workflows", s.Limits.Children)
	}
	if r.Wait != was {
		s.do(Show{Task: m.task})
	}
	return waits
}

// opening completes an opening. If it skips the ended instances, only requeued and skipped ones run again.
func (s *State) opening(m *fanOut, o Opening, concurrency int32, skipped bool) *Opening {
	name := s.core.Name(m.task)
	o.Partition = &historyv1.Partition{
		Chain: s.Chain, RunId: s.RunID, Generation: s.Input.GetGeneration(), Task: name, From: int32(o.From), To: int32(o.To), Count: int32(m.total),
		Concurrency: concurrency, MaxFailures: s.maxFailures(m), Claim: s.Input.GetGeneration() * claimsOfGeneration,
		DurationEstimate: m.durationEstimate(),
	}
	if m.halted {
		o.Partition.HaltReason = m.haltReason
	}
	if o.before != nil {
		o.Partition.Previous, o.Rerun = s.idOf(o.before), &historyv1.Rerun{Failed: !skipped, Skipped: skipped && !m.halted}
	}
	o.requeued = m.requeuedIn(o.From, o.To)
	for _, n := range o.requeued {
		o.Requeued = append(o.Requeued, names.InstanceName(name, int(n)))
	}
	return &o
}

// Open opens a partition in a child with an input.
func (s *State) Open(o *Opening, input *historyv1.RunInput) []Effect {
	m := s.of(o.Task)
	p := &historyv1.PartitionReport{
		Task: s.core.Name(o.Task), From: int32(o.From), Slot: int32(o.slot), Generation: s.Input.GetGeneration(), Chain: s.Chain,
		Revision: o.before.GetRevision(),
	}
	m.dropRequeued(o.requeued)
	was := m.partition(o.From)
	if was == nil {
		p.Counts = map[string]int32{v1.TaskPending: int32(o.To - o.From)}
		m.partitions = append(m.partitions, p)
	} else {
		p.Counts, p.DurationEstimate = maps.Clone(was.GetCounts()), was.GetDurationEstimate()
		if n := int32(len(o.requeued)); n > 0 {
			p.Counts[v1.TaskPending] += n
			if p.Counts[v1.TaskDeadLetter] -= n; p.Counts[v1.TaskDeadLetter] <= 0 {
				delete(p.Counts, v1.TaskDeadLetter)
			}
		}
		m.partitions[o.From/m.size] = p
	}
	c := s.addChild(m, o.From)
	s.do(OpenChild{Child: c.number, ID: s.idOf(p), Opening: o, Input: input})
	if was != nil {
		s.reported(m)
	}
	return s.take()
}
