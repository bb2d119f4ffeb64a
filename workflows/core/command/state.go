package command

import (
	"cmp"
	"slices"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/fanout"
	"switchyard/workflows/core/flight"
)

// Facts are the other parts of the run's state that decide whether a command can be carried out.
type Facts struct {
	Core    *dag.State
	Records *flight.Records
	Flight  *flight.State
	FanOuts *fanout.State
}

// State holds what people have asked of a run. The caller sets the facts when the run begins. A State is not safe for
// concurrent use.
type State struct {
	Facts
	Approval    *v1.RunApproval // of the run; nil if it has needed none
	SubmittedBy string          // who submitted the run, or "" if unknown
	IsCancelled bool            // Cancel has been called
	CancelledBy string          // who has cancelled the run, or "" if unknown

	cancelIDs  []string // request IDs of the newest Cancels; one from before `finally` may be empty
	carriedOut []string // IDs of the newest updates that the run has carried out
}

// New returns the state of a run. carriedOut holds the IDs of the updates that its earlier executions have carried out.
func New(carriedOut []string) *State { return &State{carriedOut: slices.Clone(carriedOut)} }

// maxCarriedOut is the number of updates whose repetition a run recognizes. Only those whose answers were lost are repeated, and
// at most 10 are in flight.
const maxCarriedOut = 50

// AddCarriedOut records that the update with an ID has been carried out.
func (s *State) AddCarriedOut(id string) {
	s.carriedOut = append(s.carriedOut, id)
	s.carriedOut = s.carriedOut[max(0, len(s.carriedOut)-maxCarriedOut):]
}

// HasCarriedOut reports whether the update with an ID has been carried out.
func (s *State) HasCarriedOut(id string) bool { return slices.Contains(s.carriedOut, id) }

// Cancellation is a request to cancel the whole run.
type Cancellation struct {
	By, Reason string // the person, or "" if unknown, and one line for people, or ""
	RequestID  string // "" for one that no person has sent through a gateway
	Now        bool   // `finally` is to end, too
}

// Cancel cancels the run. The first reason counts. A cancellation ends `finally` only on an explicit order: with Now, or as the second one
// of the run, with a request ID of its own, once `finally` has begun. A request that is repeated, or that comes from the parent of the
// run, is neither. A pause ends with the first one. ok is false if `finally` runs on.
func (s *State) Cancel(c Cancellation) (effects []Effect, ok bool) {
	inFinally, isKnown, isFirst := s.Core.InFinally(), slices.Contains(s.cancelIDs, c.RequestID), !s.IsCancelled
	now := c.Now || inFinally && len(s.cancelIDs) > 0 && c.RequestID != "" && !isKnown
	if s.IsCancelled = true; isFirst {
		s.CancelledBy = cmp.Or(s.CancelledBy, c.By)
	}
	if !isKnown && (c.RequestID != "" || !inFinally) {
		s.cancelIDs = append(s.cancelIDs, c.RequestID)
		s.cancelIDs = s.cancelIDs[max(0, len(s.cancelIDs)-maxCarriedOut):]
	}
	switch {
	case inFinally && !now:
		if !isKnown && s.Flight.IsPaused() {
			effects = s.SetPaused(false, &historyv1.TaskCommand{By: c.By, Reason: "the run was cancelled"})
		}
		return effects, isKnown && c.RequestID != ""
	case !isFirst && !now:
		return nil, true
	}
	effects = []Effect{raise(dag.Cancel{Error: c.Reason, Now: now})}
	if now {
		effects = append(effects, Fly{s.Flight.CancelRunsNow(c.Reason)})
	}
	return effects, true
}

// Save adds the state to the one for the next execution.
func (s *State) Save(c *historyv1.RunState) {
	c.CancelledBy, c.CarriedOut, c.Approval, c.SubmittedBy, c.CancelIds = s.CancelledBy, s.carriedOut, s.Approval, s.SubmittedBy, s.cancelIDs
}

// Restore continues from the state of the previous execution.
func (s *State) Restore(c *historyv1.RunState) {
	s.CancelledBy, s.IsCancelled, s.Approval, s.SubmittedBy = c.GetCancelledBy(), s.Core.Cancelled(), c.GetApproval(), c.GetSubmittedBy()
	s.cancelIDs = c.GetCancelIds()
}

// OpenState returns the state of the run while it is open. A run that waits for its run slot is pending.
func (s *State) OpenState() string {
	// underWay is the number of tasks and instances that wait for a node or have one.
	underWay := s.Core.Count(v1.TaskQueued) + s.Core.Count(v1.TaskAssigned) + s.Core.Count(v1.TaskRunning) - s.Core.RunningGroups()
	switch {
	case s.AwaitsApproval():
		return v1.RunPendingApproval
	case s.Flight.IsPaused():
		return v1.RunPaused
	case s.Flight.AwaitsSlot():
		return v1.RunPending
	case s.Flight.Approvals() > 0 && underWay == s.Flight.Approvals():
		return v1.RunPendingApproval
	}
	return v1.RunRunning
}

// DeadLetters returns the number of dead letters of the run, including those of its partitions.
func (s *State) DeadLetters() int {
	return s.Core.Count(v1.TaskDeadLetter) + s.FanOuts.CountDeadLetters()
}
