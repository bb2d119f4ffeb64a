package view

import (
	"maps"
	"slices"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// Save hands what people see over to the next execution, beside the state of the cores, which must have been saved before.
func (s *Status) Save(c *historyv1.RunState) {
	c.CreatedAt, c.Revision, c.PausedBy = s.run.CreatedAt, s.revision, s.pausedBy
	for i := range s.entries {
		if t := c.Tasks[s.name(i)]; t != nil {
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
	task.ScheduledAfter, task.Attempts = e.scheduledAfter, e.attempts
	if e.state == v1.TaskAssigned && t.GetPaused() == "" {
		task.Error = s.Text(i) // for an approval this is its message
	}
	if f := s.fanOut(i); f != nil {
		count := int32(f.total)
		task.Count, task.Counts, t.ExpandedAt = &count, maps.Clone(f.counts), f.createdAt
	}
}

// RestoreRun restores the carried status of the run itself.
func (s *Status) RestoreRun(c *historyv1.RunState) {
	s.run.Approval, s.run.SubmittedBy = c.GetApproval(), c.GetSubmittedBy()
	if c.GetPaused() {
		s.pausedBy = c.GetPausedBy()
	}
	s.revision = max(s.revision, c.GetRevision())
}

// Restore restores the carried status of task i. Its instances, if it has any, and its record must have been restored before.
func (s *Status) Restore(i int, t *historyv1.TaskState) {
	e, task := &s.entries[i], t.GetTask()
	e.state, e.reason, e.text, e.node = task.GetState(), task.GetReason(), task.GetError(), task.GetNode()
	e.attempt, e.claim = task.GetAttempt(), t.GetClaim()
	e.assignedAt, e.startedAt = task.GetAssignedAt(), task.GetStartedAt()
	e.scheduledAfter = task.GetScheduledAfter()
	if t.GetAway() == "" { // otherwise it is the time since when the task is away
		e.completedAt = task.GetCompletedAt()
	}
	e.attempts = slices.Clip(task.GetAttempts())
	if e.state == v1.TaskAssigned {
		e.why, e.text = e.text, ""
	}
	if e.group < 0 && task.Count != nil && task.GetCount() == 0 {
		s.extrasOf(i).fanOut = &fanOut{counts: map[string]int32{}}
	}
	if f := s.fanOut(i); f != nil {
		f.createdAt = t.GetExpandedAt()
	}
	s.recount(i)
}
