package dag

import (
	"slices"
	"time"
)

// Decisions lists what the caller must do. Tasks and instances are given by index, in ascending order, at most once a list. A
// decision that a later event of the same call has made pointless is left out.
type Decisions struct {
	// Evaluate holds the tasks whose conditions to evaluate; each is answered by Evaluated.
	Evaluate []int
	// Expand holds the tasks whose instances to count; each is answered by Expanded.
	Expand []int
	// Place holds the tasks and instances that need a node, under the claim in their Record; each is answered by Placed, GaveUp
	// or Reused.
	Place []int
	// Backoff holds the delays to wait for; each is answered by BackoffOver.
	Backoff []Backoff
	// Stop holds the dispatched attempts and partitioned groups to stop; each is answered by Ended, whatever its state.
	Stop []int
	// Halt holds the partitioned groups that must not start anything new, and Resume those that may again. Neither is answered.
	Halt, Resume []int
	// Withdraw holds the tasks whose request for a node is obsolete, under the claim in their Record. It is not answered.
	Withdraw []int
	// Changed holds every task and instance whose Record has changed.
	Changed []int
	// End is the end of the run, or nil if it is not over. Apply returns it once.
	End *End
}

// A Backoff is a delay before the next attempt of a failed task.
type Backoff struct {
	Task  int
	Delay time.Duration // from the failure; may be 0
}

// An End is how a run ended.
type End struct {
	State  string // completed, failed or cancelled, or the state of an Abort
	Reason string // task_failed, cancelled or the reason of an Abort; empty if the run completed
	Error  string // one line that names the task at fault; empty if the run completed
	Task   int    // the first task that failed a failed run, otherwise -1
	// Final is the reason of a failure that the run would only repeat if it ran again, or "" if there is none.
	Final string
}

// A round collects the consequences of the events of one call, in any order and possibly with duplicates.
type round struct {
	evaluate, expand, place, backoff, stop, halt, resume, withdraw, changed []int
}

// decide turns the round into decisions and begins the next round.
func (s *State) decide() Decisions {
	r := s.records.round
	s.records.round = round{}

	d := Decisions{
		Evaluate: unique(r.evaluate, func(i int) bool { return s.ready.isAsked(i, condition) }),
		Expand:   unique(r.expand, func(i int) bool { return s.ready.isAsked(i, expansion) }),
		Stop:     unique(r.stop, s.records.isDispatched),
		Halt:     unique(r.halt, s.records.isDispatched),
		Resume:   unique(r.resume, s.records.isDispatched),
		Place:    unique(r.place, s.records.isRequested),
		Changed:  unique(r.changed, nil),
	}
	// The caller has not seen a request of this round yet, so there is nothing to withdraw.
	made := unique(r.place, nil)
	d.Withdraw = unique(r.withdraw, func(i int) bool {
		_, found := slices.BinarySearch(made, i)
		return !found
	})
	for _, i := range unique(r.backoff, func(i int) bool { return s.records.tasks[i].Backoff }) {
		d.Backoff = append(d.Backoff, Backoff{
			Task:  i,
			Delay: s.records.node(i).retry.backoff(s.records.tasks[i].Attempt - 1),
		})
	}
	if s.ends.isOver() {
		d.End = s.ends.end()
	}
	return d
}

// unique returns the tasks that keep accepts, sorted and without duplicates. A nil keep accepts all.
func unique(tasks []int, keep func(int) bool) []int {
	if len(tasks) == 0 {
		return nil
	}
	out := make([]int, 0, len(tasks))
	for _, i := range tasks {
		if keep == nil || keep(i) {
			out = append(out, i)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
