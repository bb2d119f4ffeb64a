package flight

import (
	"cmp"
	"slices"
	"time"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/definition"
)

// NextDispatch removes the unit whose placement is the oldest from those that wait for their dispatch, and returns it, or nil if there
// is none or too many are under way; a gang starts as a whole. A unit without remaining members gives its placement back. What the dispatch comes to
// is reported by Dispatched, PutBack or Unsendable.
func (s *State) NextDispatch() *Unit {
	for len(s.placed) > 0 && (s.attended < s.Limits.InFlight || s.placed[0].gang != nil) {
		u := s.placed[0]
		s.placed = s.placed[1:]
		for _, m := range slices.Clone(u.Members) {
			if t := s.core.Task(m); t.State != v1.TaskAssigned || m == u.Lead && t.Claim != u.Claim {
				s.removeMember(u, m)
			}
		}
		if len(u.Members) > 0 {
			return u
		}
		s.release(u, "")
		s.leave(u)
	}
	return nil
}

// PutBack makes the placement of a unit the oldest one again.
func (s *State) PutBack(u *Unit) { s.placed = append([]*Unit{u}, s.placed...) }

// Dispatched records that an activity dispatches a unit: Answered.
func (s *State) Dispatched(u *Unit) {
	u.Phase = Attended
	s.attended++
}

// Unsendable ends a unit that cannot be sent to its node.
func (s *State) Unsendable(u *Unit, why string) []Effect {
	if u.gang != nil {
		end := s.memberEnd(u, v1.TaskFailed, v1.ReasonPayload, why)
		end.Ended.NoRetry = true
		s.endReserving(u, end)
		return s.take()
	}
	s.release(u, "")
	s.leave(u)
	for _, m := range u.Members {
		s.raise(dag.Ended{Task: m, Claim: s.claimOf(m), State: v1.TaskFailed, Reason: v1.ReasonPayload, Error: why, ExitCode: -1, NoRetry: true})
	}
	return s.take()
}

// Silence returns how long the node of a unit may be silent.
func (s *State) Silence(u *Unit) time.Duration {
	own, all := definition.HeartbeatTimeout(s.core.Definition(u.Lead)), s.Input.GetOptions().GetHeartbeatTimeout().AsDuration()
	return cmp.Or(own, all, s.HeartbeatTimeout)
}

// MaxLease returns how long the heartbeat time-out of a unit may grow, or 0 if it may not. Nothing is lost with the lease of a
// machine or of a job on another cluster, and all members of a gang wait until the loss of one is known.
func (s *State) MaxLease(u *Unit) time.Duration {
	def, options := s.core.Definition(u.Lead), s.Input.GetOptions()
	fixed := definition.HeartbeatTimeout(def) != 0 || options.GetHeartbeatTimeout().AsDuration() != 0 && options.GetMaxLease() == nil
	if fixed || v1.Lasts(def.GetType()) || v1.IsRemote(def.GetType()) || def.GetGang() != nil {
		return 0
	}
	return cmp.Or(options.GetMaxLease().AsDuration(), definition.MaxLease)
}

// attempt returns what decides how the attempt of a unit ends.
func (s *State) attempt(u *Unit) Attempt {
	taskType := s.core.Definition(u.Members[0]).GetType()
	a := Attempt{
		Place:  u.Place,
		Remote: v1.IsRemote(taskType), Lasting: v1.Lasts(taskType), WasDetached: !u.LeaseUntil.IsZero(), Excuse: u.excuse,
	}
	for _, i := range u.Members {
		rec := s.core.Task(i)
		a.Members = append(a.Members, Member{
			Task: i, Claim: rec.Claim, Attempt: rec.Attempt, Number: int32(s.core.Number(i)), Running: rec.State == v1.TaskRunning,
			Stopped: slices.Contains(u.stopped, i), Retryable: s.core.IsRetryable(i), LostLeases: s.records.Of(i).LostLeases,
		})
	}
	return a
}

// Answered continues with a unit whose activity has ended.
func (s *State) Answered(u *Unit, answer Answer, now time.Time) []Effect {
	left := u.LeaseUntil.Sub(now) // negative if the attempt was never detached
	switch s.attempt(u).Next(answer, left > 0) {
	case GoesAway:
		s.lose(u, answer, now)
	case RunsOn:
		s.runsOn(u, answer.Response, now)
	case IsStopped:
		s.do(After{time.Millisecond, "stop the attempt", Timer{kind: stopTimer, unit: u}})
	case Expires:
		s.do(After{left, "the attempt may run until its lease is over", Timer{kind: leaseTimer, unit: u, answer: answer}})
	case IsLookedFor:
		s.lookFor(u, answer, now)
	default:
		s.end(u, answer)
	}
	return s.take()
}

// Due continues after a wait.
func (s *State) Due(t Timer, now time.Time) []Effect {
	switch t.kind {
	case stopTimer:
		s.attended--
		s.reattach(t.unit)
	case leaseTimer:
		s.settle(t.unit, t.answer, now)
	case findTimer:
		t.unit.isSought = false
		s.do(Wake{})
	case approvalTimer:
		s.approvalTimedOut(t.unit, now)
	case reminderTimer:
		s.remindPeople(t.unit)
	case deadlineTimer:
		s.expire(t.task)
	case runTimer:
		s.expireRun()
	case finallyTimer:
		s.expireFinally(now)
	case silenceTimer:
		s.findSilent()
	case lateTimer:
		s.markLate(t.task)
	case runLateTimer:
		s.markRunLate()
	}
	return s.take()
}

// Settle ends the attempt of a unit, or looks for its record again.
func (s *State) Settle(u *Unit, answer Answer, now time.Time) []Effect {
	s.settle(u, answer, now)
	return s.take()
}

// settle ends an attempt. If the attempt may have completed without an answer, settle looks for its record first.
func (s *State) settle(u *Unit, answer Answer, now time.Time) {
	if s.attempt(u).AtRest(answer) == IsLookedFor {
		s.lookFor(u, answer, now)
		return
	}
	s.end(u, answer)
}

// lookFor waits until the node of a lost attempt has delivered all its records, then ends the attempt with the recorded result. If
// there is no record, the attempt is lost. A person can end the wait by stopping the attempt.
func (s *State) lookFor(u *Unit, answer Answer, now time.Time) {
	if answer.Kind == Silent {
		beat := answer.Beat
		running := u.Members[min(int(beat.GetEnded()), len(u.Members)-1)]
		notice := s.silence(u, beat, now)
		s.records.At(running).Silent = notice
		s.do(ShowStarted{running, beat.GetStartedAt()}, Show{Task: running, Event: v1.EventSilent, Text: notice})
	}
	isRetried := v1.IsRemote(s.core.Definition(u.Members[0]).GetType()) || !slices.ContainsFunc(u.Members, func(i int) bool {
		return !s.core.RetriesLeft(i) || s.core.Definition(i).GetRetry().GetWhen() != ""
	})
	// A node that has lost a lease is alive; its next snapshot lists what it has recorded.
	silence := s.Silence(u)
	if sent := answer.Beat.GetSentAt(); sent != nil {
		silence = max(silence, now.Sub(sent.AsTime()))
	}
	s.do(AwaitRecord{u, answer, silence, answer.Kind != Answered && isRetried})
}

// Recorded ends the attempt of a unit with what its node has recorded, or as lost if recorded is nil.
func (s *State) Recorded(u *Unit, answer Answer, recorded *historyv1.ExecuteResponse) []Effect {
	isExcused := recorded.GetState() == v1.AttemptMoved
	if isExcused {
		u.excuse = recorded.GetError()
	}
	switch {
	case recorded == nil:
	case recorded.GetState() != v1.TaskLost && !isExcused:
		answer = Answer{Response: recorded, Beat: &historyv1.ExecuteProgress{}}
	case answer.Kind != Answered:
		answer.Response = recorded // some instances of a batch may have completed
	}
	s.end(u, answer)
	return s.take()
}

// end ends the attempt of a unit. What is known of the members of a batch may have to be loaded first.
func (s *State) end(u *Unit, answer Answer) {
	if len(u.Members) > 1 && answer.TimedOut() {
		s.do(LoadProgress{u, answer})
		return
	}
	s.ended(u, answer)
}

// Progressed ends the attempt of a batch, whose answer has its progress.
func (s *State) Progressed(u *Unit, answer Answer) []Effect {
	s.ended(u, answer)
	return s.take()
}

// ended ends the attempt of a unit with an answer.
func (s *State) ended(u *Unit, answer Answer) {
	ends, outcome := s.attempt(u).End(answer)
	s.attended--
	for _, m := range u.Members {
		s.suspend(m, "")
		s.heardOf(m, "")
	}
	s.release(u, outcome)
	if u.gang != nil {
		s.memberEnded(u, ends[0])
		return
	}
	s.leave(u)
	if group := s.core.Group(u.Members[0]); group >= 0 {
		if n, took := totalWork(ends); n > 0 {
			s.queue.Observe(group, n, took)
		}
	}
	for _, end := range ends {
		s.do(Settle{end})
	}
}

// Stop ends a task that is in flight. It returns false if the task has neither a node nor an approval or a run of its own, as one that
// waits to be placed.
func (s *State) Stop(i int) ([]Effect, bool) {
	u := s.units[i]
	switch {
	case u == nil:
		return nil, false
	case u.gang != nil && (u.Phase == Placed || u.Phase == Reserving):
		s.endReserving(u, s.memberEnd(u, v1.TaskCancelled, "", ""))
	case u.Phase == Withheld: // its end is known
	case u.Phase == Placed:
		s.stopPlaced(u, i)
	case u.approval != nil:
		s.endApproval(u, NothingRan, dag.Ended{State: v1.TaskCancelled, ExitCode: -1})
	case u.Run != nil:
		s.stopRun(u)
	case u.hasAttempt():
		u.stopped = append(u.stopped, i)
		switch u.Phase {
		case Away:
			s.endAway(u, v1.TaskCancelled)
		case Attended:
			s.do(Cancel{u})
		}
	default:
		return nil, false
	}
	return s.take(), true
}

// stopPlaced ends a task that has a node but no started attempt.
func (s *State) stopPlaced(u *Unit, i int) {
	s.raise(dag.Ended{Task: i, Claim: s.claimOf(i), State: v1.TaskCancelled, ExitCode: -1})
	if s.removeMember(u, i); len(u.Members) > 0 {
		return
	}
	s.placed = remove(s.placed, u)
	s.release(u, "")
	s.leave(u)
}
