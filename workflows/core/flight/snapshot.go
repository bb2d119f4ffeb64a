package flight

import (
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// Save hands the records of tasks and the units in flight over to the next execution, with the tasks that are held and what was
// learnt about durations. Everything else is requested again. The core must have been saved before.
func (s *State) Save(c *historyv1.RunState) {
	c.Paused, c.Abandoned = s.IsPaused(), s.abandoned
	s.saveDeadline(c)
	for i := range s.core.Len() {
		s.saveRecord(i, c)
	}
	for _, u := range s.leads() {
		t := c.Tasks[s.core.Name(u.Lead)]
		switch {
		case u.Run != nil:
			t.ChildFirst = u.Run.First
		case u.approval != nil:
			t.Task.Error = u.approval.Text()
			if t.Approvals = u.approval.Given; !u.approval.until.IsZero() {
				t.ApprovalUntil = timestamppb.New(u.approval.until)
			}
			if !u.approval.remind.IsZero() {
				t.ApprovalReminder = timestamppb.New(u.approval.remind)
			}
		}
	}
	for i := range s.core.Len() {
		if e := s.DurationEstimate(i); e != nil {
			c.Tasks[s.core.Name(i)].DurationEstimate = e
		}
	}
	for _, u := range s.leads() {
		if u.Phase == Detached || u.Phase == Away || u.Phase == Withheld { // the node of a withheld one has recorded its end
			h := s.saved(u)
			c.Tasks[h.Members[0]].DetachedAttempt = h
		}
	}
}

// saveRecord saves the record of task i. A task that waits for others and has not begun is left out, unless it could start before.
func (s *State) saveRecord(i int, c *historyv1.RunState) {
	name, own := s.core.Name(i), s.records.Of(i)
	if own.Held {
		c.Held = append(c.Held, name)
		if own.HeldBy != "" {
			if c.HeldBy == nil {
				c.HeldBy = map[string]string{}
			}
			c.HeldBy[name] = own.HeldBy
		}
	}
	if c.Tasks[name] == nil && !own.ReadyAt.IsZero() {
		c.Tasks[name] = s.core.Task(i).TaskState()
	}
	if t := c.Tasks[name]; t != nil {
		s.records.save(i, t)
		if n, ok := s.InstanceCount(i); ok {
			count := int32(n)
			t.Task.Count, t.Task.Counts = &count, s.InstanceCounts(i)
		}
	}
}

// saved returns the record of a detached attempt for the next execution.
func (s *State) saved(u *Unit) *historyv1.DetachedAttempt {
	h := &historyv1.DetachedAttempt{
		Lead: s.core.Name(u.Lead), Claim: u.Claim, Node: u.Node, Queue: u.Assignment.GetQueue(), Incarnation: u.Assignment.GetIncarnation(),
		LeaseUntil: timestamppb.New(u.LeaseUntil),
		Gpus:       u.GPUs, NumaNode: u.NUMANode,
	}
	for _, m := range u.Members {
		h.Members = append(h.Members, s.core.Name(m))
	}
	return h
}

// Restore holds the tasks, and pauses the run, as in the previous execution.
func (s *State) Restore(c *historyv1.RunState) []Effect {
	for _, name := range c.GetHeld() {
		if i, ok := s.core.Index(name); ok {
			s.hold(i, c.GetHeldBy()[name])
		}
	}
	if c.GetPaused() {
		s.Pause()
	}
	s.abandoned = slices.Clone(c.GetAbandoned())
	if c.GetDeadlineAt() != nil {
		s.runDue = c.GetDeadlineAt().AsTime()
	}
	if due := c.GetFinally().GetDeadlineAt(); due != nil {
		s.finallyDue = due.AsTime()
	}
	if at := c.GetFinally().GetStoppedAt(); at != nil {
		s.finallyStoppedAt = at.AsTime()
	}
	if c.GetExpectedAt() != nil {
		s.expectedAt = c.GetExpectedAt().AsTime()
	}
	return s.take()
}

// RestoreTask continues with what a task of the previous execution waited for: its detached attempt, an approval or its run. It also
// restores what was learnt about durations. t may be nil.
func (s *State) RestoreTask(i int, t *historyv1.TaskState, now time.Time) []Effect {
	s.Learn(i, t.GetDurationEstimate())
	state, taskType := s.core.Task(i).State, s.core.Definition(i).GetType()
	switch h := t.GetDetachedAttempt(); {
	case h != nil:
		s.restoreAttempt(h, t)
	case taskType == v1.TypeApproval && state == v1.TaskAssigned:
		s.restoreApproval(i, t, now)
	case taskType == v1.TypeRun && s.Input.GetState() != nil && v1.IsTaskDispatched(t.GetTask().GetState()) && t.GetTask().Count == nil:
		s.restoreRun(i, t)
	}
	return s.take()
}

// restoreAttempt continues with a detached attempt.
func (s *State) restoreAttempt(h *historyv1.DetachedAttempt, t *historyv1.TaskState) {
	lead, _ := s.core.Index(h.GetLead())
	u := &Unit{
		Lead: lead, Claim: h.GetClaim(), Phase: Detached,
		Assignment: &historyv1.Assignment{Queue: h.GetQueue(), Incarnation: h.GetIncarnation()},
		Place:      Place{Node: h.GetNode(), GPUs: h.GetGpus(), NUMANode: h.NumaNode},
		LeaseUntil: h.GetLeaseUntil().AsTime(), startedAt: t.GetTask().GetStartedAt(), lock: s.lockOf(lead),
	}
	for _, name := range h.GetMembers() {
		m, _ := s.core.Index(name)
		u.Members = append(u.Members, m)
	}
	if t.GetAway() != "" {
		u.Phase = Away
	}
	s.detached = append(s.detached, s.track(u))
}

// track registers a unit that was in flight in the previous execution, with the lock that it holds.
func (s *State) track(u *Unit) *Unit {
	for _, m := range u.Members {
		s.units[m] = u
	}
	if s.joinGang(u); u.gang == nil || len(u.gang.units) == 1 {
		s.queue.UnderWay(s.admissible(u.Lead))
	}
	return u
}
