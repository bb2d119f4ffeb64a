package dag

import v1 "switchyard/proto/switchyard/v1"

// phase is a part of a run with an outcome of its own: its tasks, or its `finally`. Halt and cancellation stay within a phase.
type phase struct {
	from, to  int   // its tasks in the graph: from from to to-1
	remaining int   // number of its tasks that have not ended, without instances
	failures  int   // number of its tasks that ended as an unexcused failure
	first     int   // the first such task, or -1
	cancelled bool  // a Cancel or an Abort came in time
	aborted   Abort // after Cancel, only its Error is set
}

func newPhase(from, to int) *phase { return &phase{from: from, to: to, first: -1} }

// isOver reports whether all tasks of the phase have ended.
func (p *phase) isOver() bool { return p.remaining == 0 }

// contains reports whether a task of the graph belongs to the phase.
func (p *phase) contains(task int) bool { return p.from <= task && task < p.to }

// InFinally reports whether `finally` has begun: all other tasks have ended.
func (s *State) InFinally() bool { return s.ends.finallyBegan }

// HasFinally reports whether `finally` has any tasks.
func (s *State) HasFinally() bool { return s.ends.finally.from < s.ends.finally.to }

// IsFinally reports whether a task, or the task of an instance, belongs to `finally`.
func (s *State) IsFinally(i int) bool { return s.ends.finally.contains(s.records.taskOf(i)) }

// TasksEnd returns how the tasks of the run have ended, regardless of `finally`, which sees that end. Unless InFinally reports
// true, the end is preliminary.
func (s *State) TasksEnd() End { return *s.ends.endOf(s.ends.tasksPhase) }

// Failed returns the tasks that have failed the run, ascending, without those of `finally`.
func (s *State) Failed() (failed []int) {
	for i := range s.ends.tasksPhase.to {
		if s.ends.failsRun(i) {
			failed = append(failed, i)
		}
	}
	return failed
}

// beginFinally starts the tasks of `finally` if all other tasks have ended. It starts none in a run that has not begun, because
// such a run has done nothing that has to be cleaned up.
func (s *State) beginFinally() {
	if s.ends.tasksPhase.isOver() {
		s.startFinally()
	}
}

// startFinally starts the tasks of `finally`, unless it has begun or the run has not.
func (s *State) startFinally() {
	if e := s.ends; !e.finallyBegan && e.started && !e.finally.isOver() {
		e.finallyBegan = true
		s.starts.decideAll()
	}
}

// BeginFinally starts `finally` although cancelled tasks may still run, on nodes that are silent. The run ends only after those.
type BeginFinally struct{}

func (BeginFinally) apply(s *State) {
	if s.ends.tasksPhase.cancelled {
		s.startFinally()
	}
}

// ExpireFinally ends `finally` because its time-out has passed.
type ExpireFinally struct {
	Error string // one line for people
}

func (e ExpireFinally) apply(s *State) {
	if s.ends.finallyBegan {
		s.ends.cancelPhase(s.ends.finally, Abort{State: v1.RunFailed, Reason: v1.ReasonFinallyTimeout, Error: e.Error})
	}
}
