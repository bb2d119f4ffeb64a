package flight

import (
	"fmt"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/definition"
	"switchyard/workflows/eventlog"
)

// StartDeadline starts the deadline of a task that could start, and the time within which the task is expected to end, if it has
// them. Further calls are no-ops.
func (s *State) StartDeadline(i int, now time.Time) (effects []Effect) {
	if s.core.Group(i) >= 0 {
		return nil
	}
	start := func(kind timerKind, limit time.Duration, summary string) {
		t := Timer{kind: kind, task: i}
		if limit <= 0 || s.due[t] {
			return
		}
		r := s.records.At(i)
		if r.ReadyAt.IsZero() {
			r.ReadyAt = now
		}
		s.due[t] = true
		left := max(r.ReadyAt.Add(limit).Sub(now), time.Millisecond)
		effects = append(effects, StartTimer{left, summary + " of " + s.core.Name(i), t})
	}
	def := s.core.Definition(i)
	start(deadlineTimer, definition.Deadline(def), "deadline")
	if s.records.Of(i).LateSince.IsZero() {
		start(lateTimer, definition.ExpectedWithin(def), "expected end")
	}
	return effects
}

// StopDeadline stops the deadline and the expected time of a task that has ended.
func (s *State) StopDeadline(i int) (effects []Effect) {
	if !v1.IsTaskTerminal(s.core.Task(i).State) {
		return nil
	}
	for _, kind := range []timerKind{deadlineTimer, lateTimer} {
		if t := (Timer{kind: kind, task: i}); s.due[t] {
			delete(s.due, t)
			effects = append(effects, StopTimer{t})
		}
	}
	return effects
}

// expire ends a task whose deadline has passed, unless it has ended.
func (s *State) expire(i int) {
	if s.due[Timer{kind: deadlineTimer, task: i}] {
		text := fmt.Sprintf("it did not end within its deadline of %s%s", s.core.Definition(i).GetDeadline(), s.missedBecause(i))
		s.raise(dag.Expire{Task: i, Error: text})
	}
}

// expireRun ends the run at its deadline. If only `finally` is left, it continues, even if the run was paused.
func (s *State) expireRun() {
	if s.core.InFinally() && s.IsPaused() {
		s.do(Continue{"the deadline of the run has passed"})
	}
	s.raise(dag.Abort{
		State: v1.TaskFailed, Reason: v1.ReasonDeadline,
		Error: fmt.Sprintf("the run did not end within its deadline of %s%s", s.Input.GetDefinition().GetDeadline(), s.firstWait(0, s.core.Len())),
	})
}

// missedBecause returns what task i waits for, or what an instance of it waits for if none runs, to be appended to the error
// about its deadline. It returns "" if the task does not wait.
func (s *State) missedBecause(i int) string {
	if why := s.waited(i); why != "" {
		return ": " + why
	}
	first, count := s.core.Instances(i)
	return s.firstWait(first, count)
}

// firstWait returns the name of the first waiting task among count tasks starting at first, and what it waits for. It returns
// "" if none waits or if any of them runs.
func (s *State) firstWait(first, count int) (text string) {
	for i := first; i < first+count; i++ {
		_, instances := s.core.Instances(i)
		switch why := s.waited(i); {
		case why == "" && v1.IsTaskDispatched(s.core.Task(i).State) && instances == 0:
			return ""
		case why != "" && text == "":
			text = fmt.Sprintf("; %s waited: %s", s.core.Name(i), why)
		}
	}
	return text
}

// waited returns what task i waits for, or "" if it has started or has to wait for other tasks.
func (s *State) waited(i int) string {
	switch {
	case s.ApprovalOf(i) != nil:
		return "waits for approval"
	case s.core.Task(i).State != v1.TaskQueued:
		return ""
	case s.records.Of(i).Held:
		return "held " + s.WaitText(i)
	}
	return s.WaitText(i)
}

// StartRunDeadline starts the deadline of the run, which began at a time, and the time within which it is expected to end, if it
// has them.
func (s *State) StartRunDeadline(began, now time.Time) (effects []Effect) {
	if s.Input.GetPartition() != nil {
		return nil
	}
	after := func(due time.Time, summary string, kind timerKind) {
		effects = append(effects, After{max(due.Sub(now), time.Millisecond), summary + " of the run", Timer{kind: kind}})
	}
	if limit := definition.RunDeadline(s.Input.GetDefinition()); limit > 0 {
		if s.runDue.IsZero() {
			s.runDue = began.Add(limit)
		}
		after(s.runDue, "deadline", runTimer)
	}
	if limit := definition.RunExpectedWithin(s.Input.GetDefinition()); limit > 0 && s.Input.GetState() == nil {
		s.expectedAt = began.Add(limit)
	}
	if !s.expectedAt.IsZero() {
		after(s.expectedAt, "expected end", runLateTimer)
	}
	return effects
}

// StartFinally starts the time-out of `finally`, if it has one.
func (s *State) StartFinally(now time.Time) []Effect {
	limit := definition.FinallyTimeout(s.Input.GetDefinition())
	if limit <= 0 {
		return nil
	}
	if s.finallyDue.IsZero() {
		s.finallyDue = now.Add(limit)
	}
	s.awaitFinally(now)
	return s.take()
}

// PauseFinally stops the clock of the time-out of `finally` while the run is paused.
func (s *State) PauseFinally(now time.Time) []Effect {
	isStopped := !s.finallyStoppedAt.IsZero()
	switch {
	case s.finallyDue.IsZero() || isStopped == s.IsPaused():
	case isStopped:
		s.finallyDue, s.finallyStoppedAt = s.finallyDue.Add(now.Sub(s.finallyStoppedAt)), time.Time{}
		s.awaitFinally(now)
	default:
		s.finallyStoppedAt = now
	}
	return s.take()
}

// awaitFinally starts a timer for the time-out of `finally`, unless one runs.
func (s *State) awaitFinally(now time.Time) {
	if !s.hasFinallyTimer {
		s.hasFinallyTimer = true
		s.do(After{max(s.finallyDue.Sub(now), time.Millisecond), "time-out of finally", Timer{kind: finallyTimer}})
	}
}

// expireFinally ends `finally` if it has taken too long. A pause does not count.
func (s *State) expireFinally(now time.Time) {
	s.hasFinallyTimer = false
	switch {
	case s.IsPaused(): // the clock is started with a new timer
	case now.Before(s.finallyDue):
		s.awaitFinally(now)
	default:
		limit := definition.FinallyTimeout(s.Input.GetDefinition())
		s.raise(dag.ExpireFinally{Error: fmt.Sprintf("finally did not end within its time-out of %s%s", limit, s.firstWait(0, s.core.Len()))})
	}
}

// markLate marks a task as late that has not ended within its expected time.
func (s *State) markLate(i int) {
	if r, def := s.records.At(i), s.core.Definition(i); s.due[Timer{kind: lateTimer, task: i}] && r.LateSince.IsZero() {
		r.LateSince = r.ReadyAt.Add(definition.ExpectedWithin(def))
		s.do(ShowLate{Task: i, Since: r.LateSince, Text: fmt.Sprintf("it has not ended within the expected %s%s", def.GetExpectedWithin(), s.missedBecause(i))})
	}
}

// markRunLate marks the run as late.
func (s *State) markRunLate() {
	since := s.expectedAt
	s.expectedAt = time.Time{}
	text := fmt.Sprintf("the run has not ended within the expected %s%s", s.Input.GetDefinition().GetExpectedWithin(), s.firstWait(0, s.core.Len()))
	s.do(ShowLate{Task: eventlog.WholeRun, Since: since, Text: text})
}

// saveDeadline hands the deadline of the run, and its expected end, over to the next execution.
func (s *State) saveDeadline(c *historyv1.RunState) {
	if !s.runDue.IsZero() {
		c.DeadlineAt = timestamppb.New(s.runDue)
	}
	if !s.finallyDue.IsZero() {
		c.Finally.DeadlineAt = timestamppb.New(s.finallyDue)
	}
	if !s.finallyStoppedAt.IsZero() {
		c.Finally.StoppedAt = timestamppb.New(s.finallyStoppedAt)
	}
	if !s.expectedAt.IsZero() {
		c.ExpectedAt = timestamppb.New(s.expectedAt)
	}
}
