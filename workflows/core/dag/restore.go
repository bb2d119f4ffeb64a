package dag

import (
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// A RestoreOption gives Restore state that the records do not hold.
type RestoreOption func(*State)

// WithCancelled restores State.Cancelled.
func WithCancelled(cancelled bool) RestoreOption {
	return func(s *State) { s.ends.cancelled = cancelled }
}

// WithAborted restores State.Aborted.
func WithAborted(abort Abort) RestoreOption {
	return func(s *State) {
		s.ends.aborted = abort
		s.ends.cancelled = s.ends.cancelled || abort.State != ""
	}
}

// WithFirstFailure restores State.FirstFailure. Without it, or if that task did not fail the run, Restore takes the failed task
// with the lowest index.
func WithFirstFailure(task int) RestoreOption {
	return func(s *State) { s.ends.first = task }
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
