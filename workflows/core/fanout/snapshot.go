package fanout

import (
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// Restore continues with a large fan-out from the state that the previous execution or generation left of its task.
func (s *State) Restore(task int, t *historyv1.TaskState) []Effect {
	isNew := s.Input.GetState() == nil
	if len(t.GetPartitions()) == 0 || s.core.Task(task).State == v1.TaskPending && isNew && s.core.RunsAnew(task) {
		return nil // there are no partitions, or all of it is done again
	}
	m := newFanOut(task, int(t.GetTask().GetCount()), s.partitionSize(task))
	m.partitions, m.before, m.requeued, m.partial = t.GetPartitions(), t.GetPreviousPartitions(), t.GetRequeued(), t.GetPartial()
	s.fanOuts = append(s.fanOuts, m)
	if !isNew { // those of the previous generation have been ended
		s.reattach(m)
	}
	if m.countedFailures() > s.maxFailures(m) && !isNew {
		m.halt(v1.ReasonMaxFailures) // otherwise partitions would be opened before the others have reported again
	}
	return s.take()
}

// reattach continues with the open partitions of the previous execution.
func (s *State) reattach(m *fanOut) {
	for _, p := range m.partitions {
		if !p.GetOver() {
			c := s.addChild(m, int(p.GetFrom()))
			c.phase, c.id = open, s.idOf(p)
			s.do(Reattach{Child: c.number, ID: c.id, First: p.GetFirst()})
		}
	}
}

// Save hands the large fan-outs and the context over to the next execution.
func (s *State) Save(c *historyv1.RunState) {
	if s.Input.GetPartition() != nil {
		c.HaltReason = s.core.GroupHalted(0)
	}
	c.Context = s.context
	for _, m := range s.fanOuts {
		if t := c.Tasks[s.core.Name(m.task)]; t != nil {
			t.Partitions, t.PreviousPartitions, t.Requeued, t.Partial = m.partitions, m.before, m.requeued, m.partial
		}
	}
}
