package dag

import (
	"errors"
	"fmt"
	"slices"
)

// Why a task cannot be put back.
var (
	ErrUnknownTask   = errors.New("the run has no such task")
	ErrCancelled     = errors.New("the run was cancelled, and a cancelled run does not go on")
	ErrNotDeadLetter = errors.New("only a dead letter can be put back")
)

// Reopen returns a state that goes on from records, such as those of a run that
// is over, with some of its dead letters put back. State.Start gives the first
// decisions. The error wraps one of those above.
func Reopen(g *Graph, records []Record, tasks []int, options ...RestoreOption) (*State, error) {
	s := Restore(g, records, options...)
	for _, i := range tasks {
		if err := s.MayRetry(i); err != nil {
			return nil, err
		}
	}
	if len(tasks) > 0 {
		s.putBack(tasks)
	}
	return s, nil
}

// MayRetry says why a task cannot be put back, or nil.
func (s *State) MayRetry(i int) error {
	switch {
	case !s.has(i):
		return ErrUnknownTask
	case s.cancelled:
		return ErrCancelled
	case s.tasks[i].State != StateDeadLetter:
		return fmt.Errorf("task %q is %s: %w", s.graph.Name(i), s.tasks[i].State, ErrNotDeadLetter)
	}
	return nil
}

// putBack puts dead letters back, with what was skipped for their sake. It looks
// at every task, like a halt.
func (s *State) putBack(tasks []int) {
	tasks = slices.Compact(slices.Sorted(slices.Values(tasks)))
	wasHalted := s.halted()
	again := make([]bool, len(s.tasks)) // what is below these is decided anew
	for _, i := range tasks {
		again[i] = true
		s.set(i, Record{State: StateQueued, Claim: s.tasks[i].Claim, ExitCode: -1, Retried: true})
	}
	s.derive()
	lifted := wasHalted && !s.halted()
	for i := range s.tasks {
		for _, parent := range s.graph.nodes[i].parents {
			again[i] = again[i] || again[parent]
		}
		rec := s.tasks[i]
		if rec.State != StateSkipped || !again[i] && !(lifted && rec.Reason == ReasonHalt) {
			continue
		}
		again[i] = true
		if s.mayStart(i) {
			s.set(i, Record{State: StatePending, Claim: rec.Claim, ExitCode: -1})
		} else {
			rec.Reason, rec.Error = ReasonHalt, s.graph.ended(s.first, s.tasks[s.first].State)
			s.set(i, rec)
		}
	}
	s.derive()
	for _, i := range tasks {
		if s.progress[i].open == 0 {
			s.enqueue(i, s.tasks[i])
		} else { // something above it goes on as well
			rec := s.tasks[i]
			rec.State = StatePending
			s.set(i, rec)
		}
	}
	for i := range s.tasks {
		if s.tasks[i].State == StatePending && s.progress[i].open == 0 && !s.progress[i].evaluating {
			s.ready(i)
			s.settle()
		}
	}
}
