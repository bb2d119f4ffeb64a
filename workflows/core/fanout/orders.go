package fanout

import (
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// order sends every open partition of a fan-out its current order. The partitions answer with a report.
func (s *State) order(m *fanOut) {
	if !m.halted {
		m.haltReason = ""
	}
	for _, p := range m.partitions {
		if !p.GetOver() {
			s.orderOne(m, int(p.GetFrom()))
		}
	}
	s.endIfNoneOpen(m)
}

// orderOne sends one partition its current order as soon as its child is open. If the child has not started and
// everything is to end, the child never starts.
func (s *State) orderOne(m *fanOut, from int) {
	order := &historyv1.PartitionOrder{
		Cancel: m.stopped, Halt: m.halted, HaltReason: m.haltReason, CancelReason: s.core.EndReason(m.task), Killed: s.core.KillReason(m.task),
	}
	c := m.children[from]
	switch {
	case c == nil:
		s.endLost(m, from, "its workflow has ended")
	case c.phase == wanted && (order.Cancel || order.Killed != ""):
		s.do(CancelChild{Child: c.number})
	case c.phase != open:
		c.isLate = true
	default:
		s.do(SendOrder{ID: c.id, Order: order})
	}
}

// endIfNoneOpen ends a fan-out that is halted or stopped while none of its partitions is open.
func (s *State) endIfNoneOpen(m *fanOut) {
	if !m.hasOpenPartition() && s.isRunning(m) {
		s.reported(m)
	}
}

// OrderAll sends orders to the partitions of all large fan-outs, which tell them whether the run is paused. The partitions answer
// with a report.
func (s *State) OrderAll() []Effect {
	for _, m := range s.fanOuts {
		if s.isRunning(m) {
			s.order(m)
		}
	}
	return s.take()
}

// Halt stops new starts in large fan-outs.
func (s *State) Halt(tasks []int) []Effect {
	for _, i := range tasks {
		if m := s.of(i); m != nil && !m.halted {
			m.halt(v1.ReasonHalt)
			s.order(m)
		}
	}
	return s.take()
}

// Resume allows new starts in large fan-outs again, unless too many instances have failed.
func (s *State) Resume(tasks []int) []Effect {
	for _, i := range tasks {
		m := s.of(i)
		if m == nil || !m.halted || m.haltReason != v1.ReasonHalt {
			continue
		}
		if m.countedFailures() > s.maxFailures(m) {
			m.haltReason = v1.ReasonMaxFailures
			continue
		}
		m.halted = false
		s.order(m)
	}
	return s.take()
}

// Stop ends the partitions of a task.
func (s *State) Stop(task int) []Effect {
	if m := s.of(task); m != nil && !m.stopped {
		m.stopped = true
		s.order(m)
	}
	return s.take()
}
