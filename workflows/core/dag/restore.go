package dag

import (
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// A RestoreOption gives Restore state that the records do not hold.
type RestoreOption func(*State)

// WithRunState restores what State.Save has written. Without a first failure, or if that task did not fail the run, Restore takes
// the failed task with the lowest index.
func WithRunState(c *historyv1.RunState) RestoreOption {
	return func(s *State) {
		s.ends.tasksPhase.restore(s.records.graph, c.GetCancelled(), c.GetAbort(), c.GetFirstFailure())
		f := c.GetFinally()
		s.ends.finally.restore(s.records.graph, f.GetCancelled(), f.GetAbort(), f.GetFirstFailure())
		s.ends.finallyBegan = f.GetBegan()
	}
}

// restore takes over what is not derived from records.
func (p *phase) restore(g *Graph, isCancelled bool, abort *v1.Run, firstFailure string) {
	p.aborted = Abort{State: abort.GetState(), Reason: abort.GetReason(), Error: abort.GetError()}
	p.cancelled = isCancelled || abort.GetState() != ""
	if i, ok := g.Index(firstFailure); ok {
		p.first = i
	}
}

// save returns what is not derived from records.
func (p *phase) save(g *Graph) (abort *v1.Run, firstFailure string) {
	if p.first >= 0 {
		firstFailure = g.Name(p.first)
	}
	if a := p.aborted; a != (Abort{}) {
		abort = &v1.Run{State: a.State, Reason: a.Reason, Error: a.Error}
	}
	return abort, firstFailure
}

// Save hands the state over to the next execution. A task that has not begun is left out, unless it may start despite a halt.
func (s *State) Save(c *historyv1.RunState) {
	g := s.records.graph
	c.Cancelled = s.ends.tasksPhase.cancelled
	c.Abort, c.FirstFailure = s.ends.tasksPhase.save(g)
	if finally := s.ends.finally; s.ends.finallyBegan || finally.cancelled {
		c.Finally = &historyv1.FinallyState{Began: s.ends.finallyBegan, Cancelled: finally.cancelled}
		c.Finally.Abort, c.Finally.FirstFailure = finally.save(g)
	}
	for i, rec := range s.records.tasks {
		if rec.State != v1.TaskPending || rec.Claim != 0 || rec.Retried {
			c.Tasks[s.Name(i)] = rec.TaskState()
		}
	}
}

// WithExpansion restores the expansion of a task as returned by State.Expansion. The records of the instances, unless they are
// partitioned, follow those of the tasks and of earlier expansions. An impossible expansion is ignored.
func WithExpansion(task, from, count int, partitioned bool) RestoreOption {
	return func(s *State) {
		if task < 0 || task >= s.records.graph.Len() || !s.records.graph.FansOut(task) || s.records.expansion(task) != nil || count <= 0 {
			return
		}
		s.records.add(group{task: task, first: s.records.graph.Len() + len(s.records.owner), from: from, count: count, partitioned: partitioned})
	}
}

// TaskState returns what a RunState carries of a record. Its inverse is RecordOf.
func (r Record) TaskState() *historyv1.TaskState {
	t := &historyv1.TaskState{
		Task: &v1.Task{
			State: r.State, Reason: r.Reason, Error: r.Error, Node: r.Node, Attempt: r.Attempt, Result: &v1.TaskResult{ExitCode: r.ExitCode},
		},
		Claim: r.Claim, Backoff: r.Backoff, Retried: r.Retried, Final: r.Final,
	}
	if f := r.Failure; f.State != "" {
		failure := &v1.Task{State: f.State, Reason: f.Reason, Error: f.Error}
		if r.PendingEnd {
			t.PendingEnd = failure
		} else {
			t.Failure = failure
		}
	}
	return t
}

// RecordOf returns the record of a task that a RunState carries.
func RecordOf(t *historyv1.TaskState) Record {
	task, f := t.GetTask(), t.GetFailure()
	rec := Record{
		State: task.GetState(), Reason: task.GetReason(), Error: task.GetError(), Node: task.GetNode(),
		Attempt: task.GetAttempt(), Claim: t.GetClaim(), ExitCode: task.GetResult().GetExitCode(),
		Backoff: t.GetBackoff(), Retried: t.GetRetried(), Final: t.GetFinal(),
	}
	if rec.State == v1.TaskAssigned {
		rec.Reason, rec.Error = "", ""
	}
	if t.GetPendingEnd() != nil {
		rec.PendingEnd, f = true, t.GetPendingEnd()
	}
	rec.Failure = Failure{State: f.GetState(), Reason: f.GetReason(), Error: f.GetError()}
	return rec
}

// Restore returns a state that continues from records, by index, such as those of State.Records. Missing records at the end are
// pending. Restore returns no decisions; State.Start returns those that are due. Claims that were open stay open.
func Restore(g *Graph, tasks []Record, options ...RestoreOption) *State {
	s := newState(g)
	for _, option := range options {
		option(s)
	}
	s.records.restore(tasks)
	s.retries.derive()
	return s
}
