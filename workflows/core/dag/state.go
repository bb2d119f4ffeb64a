package dag

import (
	"maps"
	"slices"

	v1 "switchyard/proto/switchyard/v1"
)

// A State is one run of a graph. It is not safe for concurrent use.
//
// A task is identified by its index in the graph, and an instance by an index from Graph.Len() on; see State.Len.
//
// A call costs time in proportion to the tasks that it touches, whatever the size of the run. Exceptions visit everything:
// Start, the one event that cancels or halts the run, and an event that requeues ended tasks. Stopping a group and ending it
// visit each of its instances.
type State struct {
	records *records
	ready   *readiness
	ends    *ends
	fanOuts *fanOuts
	starts  *starts
	retries *retries
	anew    []bool // by task, what Reopen reruns from its beginning; nil after a Restore
}

// newState connects the parts of a state without records. Each part knows those before it, and ends calls fanOuts back.
func newState(g *Graph) *State {
	s := &State{records: newRecords(g)}
	s.ready = newReadiness(s.records)
	from, to := g.Finally()
	s.ends = &ends{records: s.records, ready: s.ready, tasksPhase: newPhase(0, from), finally: newPhase(from, to)}
	s.fanOuts = &fanOuts{records: s.records, ready: s.ready, ends: s.ends}
	s.ends.fanOuts = s.fanOuts
	s.starts = &starts{records: s.records, ready: s.ready, ends: s.ends, fanOuts: s.fanOuts}
	s.retries = &retries{records: s.records, ready: s.ready, ends: s.ends, fanOuts: s.fanOuts, starts: s.starts}
	return s
}

// New returns the state of a run that has not been started.
func New(g *Graph) *State { return Restore(g, nil) }

// Start returns all pending decisions: for a new state the tasks that may start, and after a Restore also what was in flight.
// Back-offs have their full delay, and requests for a node keep their claim. Start may be called at any time to get the pending
// decisions again. events holds the events that came before the run was to begin.
func (s *State) Start(events ...Event) Decisions {
	s.ends.started = true
	for _, p := range []*phase{s.ends.tasksPhase, s.ends.finally} {
		switch {
		case p.isOver():
		case p.cancelled:
			s.ends.cancelAll(p)
		case s.ends.halted(p):
			s.ends.haltAll(p)
		}
	}
	for k := range s.records.groups {
		task := s.records.groups[k].task
		if s.records.instances(task) != nil && s.records.tasks[task].State == v1.TaskRunning {
			s.fanOuts.start(task)
		}
	}
	s.starts.settle()
	s.starts.decideAll()
	s.beginFinally()
	s.applyAll(events)
	for i, rec := range s.records.tasks {
		switch {
		case s.ready.isAsked(i, condition):
			s.records.round.evaluate = append(s.records.round.evaluate, i)
		case s.ready.isAsked(i, expansion):
			s.records.round.expand = append(s.records.round.expand, i)
		case rec.Backoff:
			s.records.round.backoff = append(s.records.round.backoff, i)
		case rec.State == v1.TaskQueued:
			s.records.round.place = append(s.records.round.place, i)
		case s.records.isDispatched(i) && (s.ends.isCancelled(i) || rec.PendingEnd):
			s.records.round.stop = append(s.records.round.stop, i)
		}
	}
	return s.decide()
}

// Apply applies events in order and returns the resulting decisions. Many events in one call lead to the same state as one call
// for each. After the end of the run Apply is a no-op.
func (s *State) Apply(events ...Event) Decisions {
	if s.ends.isOver() {
		return Decisions{}
	}
	s.applyAll(events)
	return s.decide()
}

// applyAll applies events to the state.
func (s *State) applyAll(events []Event) {
	for _, e := range events {
		if s.ends.isOver() {
			break // a Cancel after the last end comes too late, even in the same call
		}
		e.apply(s)
		s.starts.settle()
		s.beginFinally()
	}
}

// Task returns the record of task or instance i.
func (s *State) Task(i int) Record { return s.records.tasks[i] }

// Records returns the records of all tasks and instances, by index, for Restore.
func (s *State) Records() []Record { return slices.Clone(s.records.tasks) }

// Counts returns the number of tasks and instances in each state, without zeros.
func (s *State) Counts() map[string]int { return maps.Clone(s.records.counts) }

// Count returns the number of tasks and instances in a state.
func (s *State) Count(state string) int { return s.records.counts[state] }

// Over reports whether the run has ended.
func (s *State) Over() bool { return s.ends.isOver() }

// Cancelled reports whether the tasks of the run were cancelled or aborted before they had ended.
func (s *State) Cancelled() bool { return s.ends.tasksPhase.cancelled }

// IsEnding reports whether what is open of the run was cancelled or aborted: its tasks or, once these have ended, its `finally`.
func (s *State) IsEnding() bool {
	if s.ends.tasksPhase.isOver() && !s.ends.finally.isOver() { // it has not begun in a run that waits for its approval
		return s.ends.finally.cancelled
	}
	return s.ends.current().cancelled
}

// Aborted returns the Abort that ends what is open of the run, or a zero Abort if none does. After a Cancel it holds only the
// Error.
func (s *State) Aborted() Abort { return s.ends.current().aborted }

// IsCancelled reports whether the phase of a task or instance was cancelled or aborted.
func (s *State) IsCancelled(i int) bool { return s.ends.isCancelled(i) }

// FirstFailure returns the first task that failed the run, or -1.
func (s *State) FirstFailure() int { return s.ends.tasksPhase.first }

// MayRetry returns why a task or instance cannot be requeued, or nil if it can.
func (s *State) MayRetry(i int) error { return s.retries.mayRetry(i) }

// MayRequeue returns why a task cannot be requeued for its partitioned instances, or nil if it can.
func (s *State) MayRequeue(task int) error { return s.retries.mayRequeue(task) }

// IsRetryable reports whether a task has a retry policy with retries, used up or not.
func (s *State) IsRetryable(i int) bool { return s.records.node(i).retry.retries > 0 }

// RetriesLeft reports whether a task would be retried if its attempt failed now.
func (s *State) RetriesLeft(i int) bool {
	return s.Task(i).Attempt < s.records.node(i).retry.retries && s.ends.mayStart(i)
}
