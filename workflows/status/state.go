package status

import (
	"slices"

	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
)

// RunState returns the state of the status and of the core for the next execution.
func (s *Status) RunState(core *dag.State) *historyv1.RunState {
	c := &historyv1.RunState{
		CreatedAt: s.run.CreatedAt,
		Context:   s.run.Context,
		Revision:  s.revision,
		Tasks:     map[string]*historyv1.TaskState{},
		PausedBy:  s.pausedBy,
	}
	for i := range s.entries {
		rec := core.Task(i)
		own := s.records.Of(i)
		if own.Held {
			c.Held = append(c.Held, s.name(i))
			if by := own.HeldBy; by != "" {
				if c.HeldBy == nil {
					c.HeldBy = map[string]string{}
				}
				c.HeldBy[s.name(i)] = by
			}
		}
		if rec.State == v1.TaskPending && rec.Claim == 0 && own.ReadyAt.IsZero() {
			continue
		}
		c.Tasks[s.name(i)] = s.taskState(i, rec)
	}
	return c
}

func (s *Status) taskState(i int, rec dag.Record) *historyv1.TaskState {
	e, own := &s.entries[i], s.records.Of(i)
	task := s.taskMessage(i)
	task.State, task.Reason, task.Notice = rec.State, rec.Reason, ""
	if rec.State != v1.TaskAssigned || own.Suspended != "" {
		task.Error = rec.Error // for an approval this is its message
	}
	task.Type, task.DependsOn, task.Held = "", nil, false // other fields carry these
	t := &historyv1.TaskState{
		Task: task, Claim: rec.Claim, Record: own.ResultKey, Backoff: rec.Backoff, Retried: rec.Retried,
		Unacknowledged: own.Unacknowledged, AvoidNode: own.Avoid, Refusals: own.Refusals, Checkpoint: own.Checkpoint, Items: own.Items,
		Paused: own.Suspended, LeftRecords: own.Left, Lock: own.Lock, LostLeases: own.LostLeases, Continues: own.Continues, Requeues: own.Requeues,
		Final: rec.Final,
	}
	if own.ResultKey != "" {
		kept := own.Result()
		task.Result = &v1.TaskResult{
			ExitCode: kept.GetExitCode(), Signal: kept.GetSignal(), CpuSeconds: kept.GetCpuSeconds(),
			PeakMemoryMb: kept.GetPeakMemoryMb(), StdoutTruncated: true, StderrTruncated: true,
			Agent: kept.GetAgent(), Warning: kept.GetWarning(),
		}
	}
	if f := s.fanOut(i); f != nil {
		t.ExpandedAt = f.createdAt
	}
	if m := e.extras; m != nil {
		t.Away = m.away
	}
	if !own.ReadyAt.IsZero() {
		t.ReadyAt = timestamppb.New(own.ReadyAt)
	}
	if f := rec.Failure; f.State != "" {
		failure := &v1.Task{State: f.State, Reason: f.Reason, Error: f.Error}
		if rec.PendingEnd {
			t.PendingEnd = failure
		} else {
			t.Failure = failure
		}
	}
	return t
}

// RestoreRun restores the carried status of the run itself.
func (s *Status) RestoreRun(c *historyv1.RunState) {
	s.run.Approval, s.run.SubmittedBy = c.GetApproval(), c.GetSubmittedBy()
	if c.GetPaused() {
		s.pausedBy = c.GetPausedBy()
	}
	s.revision = max(s.revision, c.GetRevision())
	s.Log.ContinueFrom(c.GetEventSlices(), c.GetNextEvent())
}

// Restore restores the carried status of task i. Its instances, if it has any, and its record must have been restored before.
func (s *Status) Restore(i int, t *historyv1.TaskState) {
	e, task := &s.entries[i], t.GetTask()
	e.state, e.reason, e.text, e.node = task.GetState(), task.GetReason(), task.GetError(), task.GetNode()
	e.attempt, e.claim = task.GetAttempt(), t.GetClaim()
	e.assignedAt, e.startedAt = task.GetAssignedAt(), task.GetStartedAt()
	e.completedAt, e.scheduledAfter = task.GetCompletedAt(), task.GetScheduledAfter()
	e.attempts = slices.Clip(task.GetAttempts())
	if e.state == v1.TaskAssigned {
		e.why, e.text = e.text, ""
	}
	if t.GetAway() != "" {
		s.extrasOf(i).away = t.GetAway()
	}
	if task.GetCachedFrom() != "" || task.GetChildRun() != "" {
		m := s.extrasOf(i)
		m.cachedFrom, m.childRun = task.GetCachedFrom(), task.GetChildRun()
	}
	if e.group < 0 && task.Count != nil && task.GetCount() == 0 {
		s.extrasOf(i).fanOut = &fanOut{counts: map[string]int32{}}
	}
	if f := s.fanOut(i); f != nil {
		f.createdAt = t.GetExpandedAt()
	}
	s.recount(i)
}
