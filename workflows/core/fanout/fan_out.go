package fanout

import (
	"cmp"
	"fmt"
	"slices"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// fanOut is a fan-out that is too large for the run. FanOut children run its partitions, a bounded number at a time, and report to
// the run.
type fanOut struct {
	task       int
	total      int
	size       int                          // instances in a partition
	partitions []*historyv1.PartitionReport // the newest report of each partition that was opened or is kept, in order
	// before holds the partitions of the previous generation, whose completed instances are kept.
	before []*historyv1.PartitionReport
	// halted stops new starts. stopped ends everything.
	halted, stopped bool
	haltReason      string // v1.ReasonHalt or v1.ReasonMaxFailures
	// requeued holds instances that were requeued by hand and whose partitions are not open again yet. partial is set if only
	// requeued instances run again and all others keep their final state.
	requeued []int32
	partial  bool
	children map[int]*child // of the open partitions, by first instance
}

func newFanOut(task, total, size int) *fanOut {
	return &fanOut{task: task, total: total, size: size, children: map[int]*child{}}
}

// partitionEnd returns the number after that of the last instance of the partition with index k.
func (m *fanOut) partitionEnd(k int) int { return min((k+1)*m.size, m.total) }

// hasOpenPartition reports whether any partition is open.
func (m *fanOut) hasOpenPartition() bool {
	return slices.ContainsFunc(m.partitions, func(p *historyv1.PartitionReport) bool { return !p.GetOver() })
}

// partitionFrom returns the partition that starts at an instance, or nil if it was never opened.
func (m *fanOut) partitionFrom(from int) *historyv1.PartitionReport {
	return reportFrom(m.partitions, from)
}

// reportFrom returns the report of the partition that starts at an instance, or nil if there is none.
func reportFrom(reports []*historyv1.PartitionReport, from int) *historyv1.PartitionReport {
	for _, p := range reports {
		if int(p.GetFrom()) == from {
			return p
		}
	}
	return nil
}

// failures returns how many instances have failed and how many were cancelled.
func (m *fanOut) failures() (n, cancelled int32) {
	for _, p := range m.partitions {
		//workflowcheck:ignore (a sum does not depend on the order)
		for state, count := range p.GetCounts() {
			switch {
			case state == v1.TaskCancelled:
				cancelled += count
			case v1.IsTaskFailure(state):
				n += count
			}
		}
	}
	return n, cancelled
}

// countedFailures returns how many instances count towards maxFailures. Instances that a person cancelled count, too.
func (m *fanOut) countedFailures() int32 {
	n, cancelled := m.failures()
	if cancelled > 0 && !m.stopped {
		n += cancelled
	}
	return n
}

func (m *fanOut) halt(reason string) { m.halted, m.haltReason = true, reason }

func (m *fanOut) partitionFailed() bool {
	return slices.ContainsFunc(m.partitions, func(p *historyv1.PartitionReport) bool { return p.GetState() == v1.TaskFailed })
}

// ended returns the end of the task.
func (m *fanOut) ended(claim int32, def *v1.TaskDefinition, counts map[string]int32, failed int32) dag.Ended {
	e := dag.Ended{Task: m.task, Claim: claim, State: v1.TaskCompleted}
	failure, final := "", int32(0)
	for _, p := range m.partitions {
		final += p.GetFinalFailures()
		if e.ExitCode == 0 || e.ExitCode == -1 && p.GetExitCode() > 0 {
			e.ExitCode = p.GetExitCode()
		}
		failure = cmp.Or(failure, p.GetFailure())
	}
	e.NoRetry = final > def.GetMaxFailures()
	switch {
	case failed > def.GetMaxFailures() && failed == counts[v1.TaskCancelled]:
		e.State, e.Reason = v1.TaskFailed, v1.ReasonInstances
		e.Error = fmt.Sprintf("%d of %d instances were cancelled", failed, m.total)
	case failed > def.GetMaxFailures():
		e.State, e.Reason = v1.TaskFailed, v1.ReasonInstances
		e.Error = fmt.Sprintf("%d of %d instances failed: %s", failed, m.total, failure)
	case m.stopped:
		e.State = v1.TaskCancelled
	case !m.halted && counts[v1.TaskCancelled] > 0 && m.partitionFailed():
		// A person cancelled an instance; instances ended by a halt are no failures.
		e.State, e.Reason = v1.TaskFailed, v1.ReasonInstances
		e.Error = fmt.Sprintf("%d of %d instances were cancelled", counts[v1.TaskCancelled], m.total)
	case counts[v1.TaskSkipped] > 0:
		e.State, e.Reason = v1.TaskSkipped, v1.ReasonHalt
	}
	return e
}

// freeSlot returns a free slot among the open partitions, or -1 if there is none.
func (m *fanOut) freeSlot(width int) int {
	taken := make([]bool, width)
	for _, p := range m.partitions {
		if !p.GetOver() && int(p.GetSlot()) < width {
			taken[p.GetSlot()] = true
		}
	}
	return slices.Index(taken, false)
}

// partition returns the partition that holds an instance, or nil if it was never opened.
func (m *fanOut) partition(number int) *historyv1.PartitionReport {
	if k := number / m.size; k < len(m.partitions) {
		return m.partitions[k]
	}
	return nil
}

// requeuedIn returns the requeued instances in the range [from, to).
func (m *fanOut) requeuedIn(from, to int) (back []int32) {
	for _, n := range m.requeued {
		if from <= int(n) && int(n) < to {
			back = append(back, n)
		}
	}
	return back
}

// hasRequeued reports whether any instance in the range [from, to) is requeued.
func (m *fanOut) hasRequeued(from, to int) bool { return len(m.requeuedIn(from, to)) > 0 }

// dropRequeued removes instances whose partition opens again from the requeued ones.
func (m *fanOut) dropRequeued(numbers []int32) {
	m.requeued = slices.DeleteFunc(m.requeued, func(n int32) bool { return slices.Contains(numbers, n) })
}

// isKept reports whether a partition keeps its results while the task continues only for instances of other partitions.
func (m *fanOut) isKept(before *historyv1.PartitionReport, back bool) bool {
	return m.partial && !back && (m.halted || before.GetCounts()[v1.TaskSkipped] == 0)
}

// canReopen reports whether an ended partition has skipped instances that may now start.
func (m *fanOut) canReopen(p *historyv1.PartitionReport) bool {
	return p.GetOver() && !m.halted && p.GetCounts()[v1.TaskSkipped] > 0
}

// durationEstimate returns the newest duration estimate of the partitions, or nil if there is none.
func (m *fanOut) durationEstimate() *historyv1.DurationEstimate {
	for k := len(m.partitions) - 1; k >= 0; k-- {
		if p := m.partitions[k].GetDurationEstimate(); p != nil {
			return p
		}
	}
	return nil
}
