package run

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// order sends every open partition of a fan-out its current order. The partitions answer with a report.
func (ps *partitions) order(m *partitionedFanOut) {
	if !m.halted {
		m.haltReason = ""
	}
	for _, p := range m.partitions {
		if !p.GetOver() {
			ps.orderOne(m, int(p.GetFrom()))
		}
	}
	ps.endIfNoneOpen(m)
}

// orderOne sends one partition its current order as soon as its child is open. If the child has not started and
// everything is to end, the child never starts.
func (ps *partitions) orderOne(m *partitionedFanOut, from int) {
	order := &v1.PartitionOrder{Cancel: m.stopped, Halt: m.halted, HaltReason: m.haltReason, CancelReason: ps.endReason(m.task), Paused: ps.flight.IsPaused(), Killed: ps.flight.KillReason(m.task)}
	w := m.children[from]
	switch {
	case w == nil:
		ps.endLost(m, from, "its workflow has ended")
	case w.id == "" && (order.Cancel || order.Killed != ""):
		ps.children.cancel(w, "")
	case !w.attached:
		m.late[from] = true
	default:
		ps.outbox.watch(ps.outbox.signal(w.id, names.OrderSignal, order, 0), func(f workflow.Future) {
			if err := f.Get(ps.ctx, nil); err != nil {
				workflow.GetLogger(ps.ctx).Debug("could not send an order to a partition", "partition", w.id, "error", err)
			}
		})
	}
}

// endIfNoneOpen ends a fan-out that is halted or stopped while none of its partitions is open.
func (ps *partitions) endIfNoneOpen(m *partitionedFanOut) {
	if !slices.ContainsFunc(m.partitions, func(p *v1.PartitionReport) bool { return !p.GetOver() }) && ps.core.Task(m.task).State == v1.TaskRunning {
		ps.reported(m)
	}
}

// orderAll sends orders to the partitions of all large fan-outs, which tell them whether the run is paused. The
// partitions answer with a report.
func (ps *partitions) orderAll() {
	for _, m := range ps.running() {
		ps.order(m)
	}
}

// halt stops new starts in large fan-outs.
func (ps *partitions) halt(tasks []int) {
	for _, i := range tasks {
		if m := ps.of(i); m != nil && !m.halted {
			m.halt(v1.ReasonHalt)
			ps.order(m)
		}
	}
}

// resume allows new starts in large fan-outs again, unless too many instances have failed.
func (ps *partitions) resume(tasks []int) {
	for _, i := range tasks {
		m := ps.of(i)
		if m == nil || !m.halted || m.haltReason != v1.ReasonHalt {
			continue
		}
		if m.countedFailures() > ps.core.Definition(i).GetMaxFailures() {
			m.haltReason = v1.ReasonMaxFailures
			continue
		}
		m.halted = false
		ps.order(m)
	}
}

// stop ends the partitions of task i. It returns false if the task has none.
func (ps *partitions) stop(i int) bool {
	m := ps.of(i)
	if m == nil {
		return false
	}
	if !m.stopped {
		m.stopped = true
		ps.order(m)
	}
	return true
}
