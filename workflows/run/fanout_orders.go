package run

import (
	"slices"

	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// orderPartitions sends every open partition of a fan-out its current order. The partitions answer with a report.
func (r *run) orderPartitions(m *partitionedFanOut) {
	if !m.halted {
		m.haltReason = ""
	}
	for _, p := range m.partitions {
		if !p.GetOver() {
			r.orderPartition(m, int(p.GetFrom()))
		}
	}
	r.reportedNothing(m)
}

// orderPartition sends one partition its current order as soon as its child is open. If the child has not started and
// everything is to end, the child never starts.
func (r *run) orderPartition(m *partitionedFanOut, from int) {
	order := &v1.PartitionOrder{Cancel: m.stopped, Halt: m.halted, HaltReason: m.haltReason, CancelReason: r.endReason(m.task), Paused: r.admission.Paused(), Killed: r.killReason(m.task)}
	w := m.children[from]
	switch {
	case w == nil:
		r.endLostPartition(m, from, "its workflow has ended")
	case w.id == "" && (order.Cancel || order.Killed != ""):
		r.cancelChild(w, "")
	case !w.attached:
		m.late[from] = true
	default:
		r.pending.Watch(r.signal(w.id, names.OrderSignal, order, 0), func(f workflow.Future) {
			if err := f.Get(r.ctx, nil); err != nil {
				workflow.GetLogger(r.ctx).Debug("a part has no ear for an order", "part", w.id, "error", err)
			}
		})
	}
}

// reportedNothing ends a fan-out that is halted or stopped while none of its partitions is open.
func (r *run) reportedNothing(m *partitionedFanOut) {
	if !slices.ContainsFunc(m.partitions, func(p *v1.PartitionReport) bool { return !p.GetOver() }) && r.core.Task(m.task).State == v1.TaskRunning {
		r.reported(m)
	}
}

// orderAllPartitions sends orders to the partitions of all large fan-outs, which tell them whether the run is paused. The
// partitions answer with a report.
func (r *run) orderAllPartitions() {
	for _, m := range r.partitioned {
		if r.core.Task(m.task).State == v1.TaskRunning {
			r.orderPartitions(m)
		}
	}
}

// haltPartitions stops new starts in large fan-outs.
func (r *run) haltPartitions(tasks []int) {
	for _, i := range tasks {
		if m := r.partitionedOf(i); m != nil && !m.halted {
			m.halt(v1.ReasonHalt)
			r.orderPartitions(m)
		}
	}
}

// resumePartitions allows new starts in large fan-outs again, unless too many instances have failed.
func (r *run) resumePartitions(tasks []int) {
	for _, i := range tasks {
		m := r.partitionedOf(i)
		if m == nil || !m.halted || m.haltReason != v1.ReasonHalt {
			continue
		}
		if r.failuresOf(m) > r.core.Definition(i).GetMaxFailures() {
			m.haltReason = v1.ReasonMaxFailures
			continue
		}
		m.halted = false
		r.orderPartitions(m)
	}
}

// stopPartitions ends the partitions of task i. It returns false if the task has none.
func (r *run) stopPartitions(i int) bool {
	m := r.partitionedOf(i)
	if m == nil {
		return false
	}
	if !m.stopped {
		m.stopped = true
		r.orderPartitions(m)
	}
	return true
}
