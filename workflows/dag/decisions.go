package dag

import (
	"slices"
	"time"
)

// Decisions are what is to be done. Tasks and instances are given by index,
// ascending, each once a list. What a later event of the same call has made pointless is left out.
type Decisions struct {
	// Conditions to evaluate; each is answered by Evaluated.
	Evaluate []int
	// Tasks whose instances are to be counted; each is answered by Expanded.
	Expand []int
	// Tasks and instances that want a node, with the claim in their Record; answered by Placed or
	// GaveUp, or by Reused.
	Place []int
	// Delays to wait out; each is answered by BackoffOver.
	Backoff []Backoff
	// Dispatched attempts and partitioned groups to stop; each is answered by Ended,
	// whatever its state.
	Stop []int
	// Remote groups in which nothing new may start any more, and those in which it may again; answered by nothing.
	Halt, Resume []int
	// Tasks whose request for a node is not wanted any more, under the claim in
	// their Record; answered by nothing.
	Withdraw []int
	// Every task and instance whose Record has changed.
	Changed []int
	// The run is over; nil while it is not. Given once by Apply.
	End *End
}

// A Backoff is a delay before a failed task is tried again.
type Backoff struct {
	Task  int
	Delay time.Duration // from the failure; may be 0
}

// An End is how a run ended.
type End struct {
	State  string // completed, failed or cancelled, or that of an Abort
	Reason string // task_failed, cancelled or that of an Abort; empty when the run completed
	Error  string // one line; names the task at fault; empty when the run completed
	Task   int    // first task that failed a failed run; -1 otherwise
}

// A round gathers what the events of one call lead to, in any order and possibly
// several times.
type round struct {
	evaluate, expand, place, backoff, stop, halt, resume, withdraw, changed []int
}

// decide turns the round into decisions and begins the next one.
func (s *State) decide() Decisions {
	r := s.round
	s.round = round{}

	d := Decisions{
		Evaluate: unique(r.evaluate, func(i int) bool { return s.isAsked(i, condition) }),
		Expand:   unique(r.expand, func(i int) bool { return s.isAsked(i, expansion) }),
		Stop:     unique(r.stop, s.isDispatched),
		Halt:     unique(r.halt, s.isDispatched),
		Resume:   unique(r.resume, s.isDispatched),
		Place:    unique(r.place, s.isRequested),
		Changed:  unique(r.changed, nil),
	}
	// A request that this round made has not been seen by anyone yet, so there is
	// nothing to withdraw.
	made := unique(r.place, nil)
	d.Withdraw = unique(r.withdraw, func(i int) bool {
		_, found := slices.BinarySearch(made, i)
		return !found
	})
	for _, i := range unique(r.backoff, func(i int) bool { return s.tasks[i].Backoff }) {
		d.Backoff = append(d.Backoff, Backoff{
			Task:  i,
			Delay: s.node(i).retry.backoff(s.tasks[i].Attempt - 1),
		})
	}
	if s.remaining == 0 {
		d.End = s.end()
	}
	return d
}

// unique returns the tasks that keep wants, sorted, each once; nil keeps all.
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
