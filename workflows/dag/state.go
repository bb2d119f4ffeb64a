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
	graph    *Graph
	tasks    []Record       // of tasks, then of instances
	progress []progress     // of tasks
	groups   []group        // tasks that have fanned out, in the order of their expansion
	owner    []int32        // group of each instance
	counts   map[string]int // tasks and instances by state, without zeros

	remaining int   // number of tasks that have not ended, without instances
	failures  int   // number of tasks that ended as an unexcused failure
	first     int   // the first such task, or -1
	cancelled bool  // a Cancel or an Abort came in time
	aborted   Abort // after Cancel, only its Error is set

	settled []int // tasks whose children have not been informed yet, first in first out
	round   round
}

// progress holds derived data of a task; it follows from the records.
type progress struct {
	open      int32  // parents that are not settled
	failed    int32  // settled parents that count as failures
	succeeded int32  // settled parents that count as successes
	group     int32  // index in State.groups plus 1; 0 if it has not fanned out
	effect    effect // what the end counts as; neutral before the end
	asked     question
}

// A question is an unanswered question about a pending task.
type question uint8

const (
	nothing question = iota
	condition
	expansion
)

// New returns the state of a run that has not been started.
func New(g *Graph) *State { return Restore(g, nil) }

// Start returns all pending decisions: for a new state the tasks that may start, and after a Restore also what was in flight.
// Back-offs have their full delay, and requests for a node keep their claim. Start may be called at any time to get the pending
// decisions again. events holds the events that came before the run was to begin.
func (s *State) Start(events ...Event) Decisions {
	switch {
	case s.remaining == 0:
	case s.cancelled:
		s.cancelAll()
	case s.halted():
		s.haltAll()
	}
	for k := range s.groups {
		task := s.groups[k].task
		if s.instances(task) != nil && s.tasks[task].State == v1.TaskRunning {
			s.startInstances(task)
		}
	}
	s.settle()
	s.readyAll()
	s.take(events)
	for i, rec := range s.tasks {
		switch {
		case s.isAsked(i, condition):
			s.round.evaluate = append(s.round.evaluate, i)
		case s.isAsked(i, expansion):
			s.round.expand = append(s.round.expand, i)
		case rec.Backoff:
			s.round.backoff = append(s.round.backoff, i)
		case rec.State == v1.TaskQueued:
			s.round.place = append(s.round.place, i)
		case s.isDispatched(i) && (s.cancelled || rec.PendingEnd):
			s.round.stop = append(s.round.stop, i)
		}
	}
	return s.decide()
}

// Apply applies events in order and returns the resulting decisions. Many events in one call lead to the same state as one call
// for each. After the end of the run Apply is a no-op.
func (s *State) Apply(events ...Event) Decisions {
	if s.remaining == 0 {
		return Decisions{}
	}
	s.take(events)
	return s.decide()
}

// take applies events to the state.
func (s *State) take(events []Event) {
	for _, e := range events {
		if s.remaining == 0 {
			break // a Cancel after the last end comes too late, even in the same call
		}
		e.apply(s)
		s.settle()
	}
}

// Task returns the record of task or instance i.
func (s *State) Task(i int) Record { return s.tasks[i] }

// Records returns the records of all tasks and instances, by index, for Restore.
func (s *State) Records() []Record { return slices.Clone(s.tasks) }

// Counts returns the number of tasks and instances in each state, without zeros.
func (s *State) Counts() map[string]int { return maps.Clone(s.counts) }

// Count returns the number of tasks and instances in a state.
func (s *State) Count(state string) int { return s.counts[state] }

// Over reports whether the run has ended.
func (s *State) Over() bool { return s.remaining == 0 }

// Cancelled reports whether the run was cancelled or aborted before it was over.
func (s *State) Cancelled() bool { return s.cancelled }

// Aborted returns the Abort that ends the run, or a zero Abort if none does. After a Cancel it holds only the Error.
func (s *State) Aborted() Abort { return s.aborted }

// FirstFailure returns the first task that failed the run, or -1.
func (s *State) FirstFailure() int { return s.first }

// halted reports whether the run has halted, so that only exempt tasks may start.
func (s *State) halted() bool { return s.graph.halt && s.first >= 0 }

// mayStart reports whether a waiting task or instance may still start.
func (s *State) mayStart(i int) bool {
	g := s.groupOf(i)
	return s.runAllows(i) && (g == nil || s.tasks[i].Retried || !s.isHeldBack(g))
}

// runAllows reports whether the run, regardless of the group, lets a waiting task or instance start.
func (s *State) runAllows(i int) bool {
	task := s.taskOf(i)
	return !s.halted() || s.graph.nodes[task].stubborn || s.tasks[i].Retried || s.tasks[task].Retried
}

func (s *State) has(i int) bool { return i >= 0 && i < len(s.tasks) }

// isRequested reports whether the task waits for a node.
func (s *State) isRequested(i int) bool {
	return s.tasks[i].State == v1.TaskQueued && !s.tasks[i].Backoff
}

// isAsked reports whether a question about i is open.
func (s *State) isAsked(i int, q question) bool {
	return i < s.graph.Len() && s.progress[i].asked == q
}

// waits reports whether a task or instance has neither started nor ended.
func (s *State) waits(i int) bool {
	return v1.IsTaskWaiting(s.tasks[i].State)
}

// isDispatched reports whether a node runs the task, or other workflows run its instances.
func (s *State) isDispatched(i int) bool {
	if !v1.IsTaskDispatched(s.tasks[i].State) {
		return false
	}
	return s.instances(i) == nil
}

func (s *State) requested(i int, claim int32) bool {
	return s.has(i) && s.tasks[i].Claim == claim && s.isRequested(i)
}

func (s *State) dispatched(i int, claim int32) bool {
	return s.has(i) && s.tasks[i].Claim == claim && s.isDispatched(i)
}

// set replaces the record of a task or instance.
func (s *State) set(i int, rec Record) {
	if rec == s.tasks[i] {
		return
	}
	count(s.counts, s.tasks[i].State, rec.State)
	if g := s.groupOf(i); g != nil {
		count(g.counts, s.tasks[i].State, rec.State)
	}
	s.tasks[i] = rec
	s.round.changed = append(s.round.changed, i)
}

// count moves one unit from a state to another.
func count(counts map[string]int, from, to string) {
	if counts[from]--; counts[from] == 0 {
		delete(counts, from)
	}
	counts[to]++
}
