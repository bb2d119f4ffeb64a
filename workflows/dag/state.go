package dag

import (
	"maps"
	"slices"

	v1 "switchyard/proto/switchyard/v1"
)

// A State is one run of a graph. It is not safe for concurrent use.
//
// A task is known by its index in the graph, an instance of one by an index from
// Graph.Len() on; see State.Len.
//
// Each call costs what the tasks cost that it touches, whatever the size of the
// run, but for Start, for the one event that cancels or halts the run and for one
// that requeues what has ended: those look at everything. What stops a group, and
// its end, look at each of its instances.
type State struct {
	graph    *Graph
	tasks    []Record       // of tasks, then of instances
	progress []progress     // of tasks
	groups   []group        // tasks that have fanned out, in the order in which they did
	owner    []int32        // group of each instance
	counts   map[string]int // tasks and instances by state, without zeros

	remaining int   // tasks that have not ended; instances are not counted
	failures  int   // tasks that ended as a failure and are not excused
	first     int   // the first of them, or -1
	cancelled bool  // Cancel or Abort came in time
	aborted   Abort // after Cancel, only its Error

	settled []int // tasks whose children have not been informed yet, first in first out
	round   round
}

// progress is what is worked out about a task; it follows from the records.
type progress struct {
	open      int32  // parents that are not settled
	failed    int32  // settled parents that count as failures
	succeeded int32  // settled parents that count as successes
	group     int32  // where in State.groups it is, from 1; 0: it has not fanned out
	effect    effect // what the end counts as; neutral before it
	asked     question
}

// A question is what has been asked for about a pending task and not been answered.
type question uint8

const (
	nothing question = iota
	condition
	expansion
)

// New returns the state of a run that has not been started.
func New(g *Graph) *State { return Restore(g, nil) }

// Start gives all decisions that are owed: for a new state what may start, after
// a Restore what was under way as well. Back-offs come with their whole delay and
// requests for a node under their old claim. It may be called at any time to learn
// again what is owed. Events are those that have come before anything was to begin.
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

// Apply gives the state what has happened, in this order, and returns what
// follows. Many events in one call lead to the same state as one call for each.
// After the end of the run nothing changes any more.
func (s *State) Apply(events ...Event) Decisions {
	if s.remaining == 0 {
		return Decisions{}
	}
	s.take(events)
	return s.decide()
}

// take has events happen.
func (s *State) take(events []Event) {
	for _, e := range events {
		if s.remaining == 0 {
			break // a Cancel after the last end comes too late, in the same call too
		}
		e.apply(s)
		s.settle()
	}
}

// Task returns what is known of task or instance i.
func (s *State) Task(i int) Record { return s.tasks[i] }

// Records returns what is known of all tasks and instances, by index, for a Restore.
func (s *State) Records() []Record { return slices.Clone(s.tasks) }

// Counts returns the number of tasks and instances in each state that has any.
func (s *State) Counts() map[string]int { return maps.Clone(s.counts) }

// Count returns the number of tasks and instances in a state.
func (s *State) Count(state string) int { return s.counts[state] }

// Over reports whether the run has ended.
func (s *State) Over() bool { return s.remaining == 0 }

// Cancelled reports whether the run was cancelled or aborted before it was over.
func (s *State) Cancelled() bool { return s.cancelled }

// Aborted returns the Abort that ends the run, or the zero one if none does. Of a
// Cancel it has the Error.
func (s *State) Aborted() Abort { return s.aborted }

// FirstFailure returns the first task that failed the run, or -1.
func (s *State) FirstFailure() int { return s.first }

// halted reports whether nothing starts any more but what the halt leaves alone.
func (s *State) halted() bool { return s.graph.halt && s.first >= 0 }

// mayStart reports whether what waits may still start.
func (s *State) mayStart(i int) bool {
	g := s.groupOf(i)
	return s.runAllows(i) && (g == nil || s.tasks[i].Retried || !s.isHeldBack(g))
}

// runAllows reports whether the run lets something start that waits.
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

// waits reports whether something has neither started nor ended.
func (s *State) waits(i int) bool {
	return v1.IsTaskWaiting(s.tasks[i].State)
}

// isDispatched reports whether a node has the task, or someone else its instances.
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

// count moves one from a state to another.
func count(counts map[string]int, from, to string) {
	if counts[from]--; counts[from] == 0 {
		delete(counts, from)
	}
	counts[to]++
}
