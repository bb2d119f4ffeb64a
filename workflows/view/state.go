package view

import (
	"slices"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// Save hands what people see over to the next execution, beside the state of the cores, which must have been saved before.
func (s *Status) Save(c *historyv1.RunState) {
	c.CreatedAt, c.Revision, c.PausedBy = s.run.CreatedAt, s.revision, s.pausedBy
	for i := range s.entries {
		if t := c.Tasks[s.core.Name(i)]; t != nil {
			s.save(i, t)
		}
	}
}

func (s *Status) save(i int, t *historyv1.TaskState) {
	e, task := &s.entries[i], t.Task
	task.AssignedAt, task.StartedAt = e.assignedAt, e.startedAt
	if e.completedAt != nil {
		task.CompletedAt = e.completedAt
	}
	task.ScheduledAfter, task.Attempts, t.ExpandedAt = e.scheduledAfter, e.attempts, e.expandedAt
}

// RestoreRun restores the carried status of the run itself.
func (s *Status) RestoreRun(c *historyv1.RunState) {
	s.run.Approval, s.run.SubmittedBy = c.GetApproval(), c.GetSubmittedBy()
	if c.GetPaused() {
		s.pausedBy = c.GetPausedBy()
	}
	s.revision = max(s.revision, c.GetRevision())
}

// Restore restores the carried status of task i. Its record must have been restored before.
func (s *Status) Restore(i int, t *historyv1.TaskState) {
	e, task := &s.entries[i], t.GetTask()
	e.state, e.claim = task.GetState(), t.GetClaim()
	e.assignedAt, e.startedAt = task.GetAssignedAt(), task.GetStartedAt()
	e.scheduledAfter, e.expandedAt = task.GetScheduledAfter(), t.GetExpandedAt()
	if t.GetAway() == "" { // otherwise it is the time since when the task is away
		e.completedAt = task.GetCompletedAt()
	}
	e.attempts = slices.Clip(task.GetAttempts())
}
