package dag

import (
	"maps"
	"slices"
)

// A State is one run of a graph. It is not safe for concurrent use.
//
// Each call costs what the tasks cost that it touches, whatever the size of the
// run, but for Start and for the one event that cancels or halts the run: those
// look at every task.
type State struct {
	graph    *Graph
	tasks    []Record
	progress []progress
	counts   map[string]int // tasks by state, without zeros

	remaining int  // tasks that have not ended
	failures  int  // tasks that ended as a failure and are not excused
	first     int  // the first of them, or -1
	cancelled bool // Cancel came in time

	settled []int // tasks whose children have not been told yet, first in first out
	round   round
}

// progress is what is worked out about a task; it can be told from the records.
type progress struct {
	open       int32  // parents that are not settled
	failed     int32  // settled parents that count as failures
	succeeded  int32  // settled parents that count as successes
	effect     effect // what the end counts as; neutral before it
	evaluating bool   // its condition has been asked for and not been answered
}

// New returns the state of a run that has not been started.
func New(g *Graph) *State { return Restore(g, nil) }

// Start gives all decisions that are owed: for a new state what may start, after
// a Restore what was under way as well. Back-offs come with their whole delay and
// requests for a node under their old claim. It may be called at any time to hear
// again what is owed.
func (s *State) Start() Decisions {
	switch {
	case s.remaining == 0:
	case s.cancelled:
		s.cancelAll()
	case s.halted():
		s.haltAll()
	}
	for i := range s.tasks {
		if s.tasks[i].State == StatePending && s.progress[i].open == 0 && !s.progress[i].evaluating {
			s.ready(i)
			s.settle()
		}
	}
	for i, rec := range s.tasks {
		switch {
		case s.progress[i].evaluating:
			s.round.evaluate = append(s.round.evaluate, i)
		case rec.Backoff:
			s.round.backoff = append(s.round.backoff, i)
		case rec.State == StateQueued:
			s.round.place = append(s.round.place, i)
		}
	}
	return s.decide()
}

// Apply tells the state what has happened, in this order, and returns what
// follows. Many events in one call lead to the same state as one call for each.
// After the end of the run nothing changes any more.
func (s *State) Apply(events ...Event) Decisions {
	if s.remaining == 0 {
		return Decisions{}
	}
	for _, e := range events {
		if s.remaining == 0 {
			break // a Cancel after the last end comes too late, in the same call too
		}
		e.apply(s)
		s.settle()
	}
	return s.decide()
}

// Task returns what is known of task i.
func (s *State) Task(i int) Record { return s.tasks[i] }

// Records returns what is known of all tasks, by index, for a Restore.
func (s *State) Records() []Record { return slices.Clone(s.tasks) }

// Counts returns the number of tasks in each state that has any.
func (s *State) Counts() map[string]int { return maps.Clone(s.counts) }

// Count returns the number of tasks in a state.
func (s *State) Count(state string) int { return s.counts[state] }

// Over says whether the run has ended.
func (s *State) Over() bool { return s.remaining == 0 }

// Cancelled says whether the run was cancelled before it was over.
func (s *State) Cancelled() bool { return s.cancelled }

// FirstFailure returns the first task that failed the run, or -1.
func (s *State) FirstFailure() int { return s.first }

// halted says whether nothing starts any more but tasks with onFailure: run.
func (s *State) halted() bool { return s.graph.halt && s.first >= 0 }

// mayStart says whether a task that waits for a node may still get one.
func (s *State) mayStart(i int) bool {
	return !s.halted() || s.graph.nodes[i].always || s.tasks[i].Retried
}

func (s *State) has(i int) bool { return i >= 0 && i < len(s.tasks) }

// isRequested says whether the task waits for a node.
func (s *State) isRequested(i int) bool {
	return s.tasks[i].State == StateQueued && !s.tasks[i].Backoff
}

// isDispatched says whether a node has the task.
func (s *State) isDispatched(i int) bool {
	return s.tasks[i].State == StateAssigned || s.tasks[i].State == StateRunning
}

func (s *State) requested(i int, claim int32) bool {
	return s.has(i) && s.tasks[i].Claim == claim && s.isRequested(i)
}

func (s *State) dispatched(i int, claim int32) bool {
	return s.has(i) && s.tasks[i].Claim == claim && s.isDispatched(i)
}

// set replaces the record of a task.
func (s *State) set(i int, rec Record) {
	if rec == s.tasks[i] {
		return
	}
	if s.counts[s.tasks[i].State]--; s.counts[s.tasks[i].State] == 0 {
		delete(s.counts, s.tasks[i].State)
	}
	s.counts[rec.State]++
	s.tasks[i] = rec
	s.round.changed = append(s.round.changed, i)
}
