package flight

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
)

// Save hands the units in flight over to the next execution, with the tasks that are held and what was learnt about durations.
// Everything else is requested again.
func (s *State) Save(c *v1.RunState) {
	c.Paused = s.IsPaused()
	for i := range s.core.Len() {
		if e := s.DurationEstimate(i); e != nil {
			c.Tasks[s.core.Name(i)].DurationEstimate = e
		}
	}
	for _, u := range s.detached {
		h := s.saved(u)
		c.Tasks[h.Members[0]].DetachedAttempt = h
	}
}

// saved returns the record of a detached attempt for the next execution.
func (s *State) saved(u *Unit) *v1.DetachedAttempt {
	h := &v1.DetachedAttempt{
		Lead: s.core.Name(u.Lead), Claim: u.Claim, Node: u.Node, Queue: u.Queue, Incarnation: u.Incarnation,
		LeaseUntil: timestamppb.New(u.LeaseUntil),
		Gpus:       u.GPUs, NumaNode: u.NUMANode,
	}
	for _, m := range u.Members {
		h.Members = append(h.Members, s.core.Name(m))
	}
	return h
}

// Restore holds the tasks, and pauses the run, as in the previous execution.
func (s *State) Restore(c *v1.RunState) []Effect {
	for _, name := range c.GetHeld() {
		if i, ok := s.core.Index(name); ok {
			s.hold(i, c.GetHeldBy()[name])
		}
	}
	if c.GetPaused() {
		s.Pause()
	}
	return s.take()
}

// RestoreTask restores the detached attempt, if any, of a task of the previous execution, and what was learnt about durations.
func (s *State) RestoreTask(i int, t *v1.TaskState) []Effect {
	s.Learn(i, t.GetDurationEstimate())
	h := t.GetDetachedAttempt()
	if h == nil {
		return nil
	}
	lead, _ := s.core.Index(h.GetLead())
	u := &Unit{
		Lead: lead, Claim: h.GetClaim(), Phase: Detached, Queue: h.GetQueue(), Incarnation: h.GetIncarnation(),
		Place:      Place{Node: h.GetNode(), GPUs: h.GetGpus(), NUMANode: h.NumaNode},
		LeaseUntil: h.GetLeaseUntil().AsTime(), startedAt: t.GetTask().GetStartedAt(), lock: s.lockOf(lead),
	}
	for _, name := range h.GetMembers() {
		m, _ := s.core.Index(name)
		u.Members = append(u.Members, m)
	}
	if len(u.Members) > 1 {
		for _, m := range u.Members {
			s.do(ShowPlace{Task: m, Lead: s.core.Number(u.Members[0])})
		}
	}
	if t.GetAway() != "" {
		u.Phase = Away
	}
	s.track(u)
	s.detached = append(s.detached, u)
	return s.take()
}

// Track registers a task that needs no node and was in flight in the previous execution, with the lock that it holds.
func (s *State) Track(i int) *Unit {
	u := &Unit{Lead: i, Members: []int{i}, Claim: s.claimOf(i), Phase: Elsewhere, lock: s.lockOf(i)}
	s.track(u)
	return u
}

func (s *State) track(u *Unit) {
	for _, m := range u.Members {
		s.units[m] = u
	}
	s.queue.UnderWay(s.admissible(u.Lead))
}
