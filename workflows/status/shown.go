package status

import (
	"cmp"

	v1 "switchyard/proto/switchyard/v1"
)

// shownInstances is the most instances of a task that the status shows; the query "instances" shows all.
const shownInstances = 1000

// shown turns the state of a task in the core into the state that people see, and explains it.
type shown struct {
	*table
	// WaitReason returns why a task that has not requested a node is waiting. It may be nil.
	WaitReason func(task int) string
}

// ShownState returns the state of task i as people see it. A task that waits for approval, or that a person has suspended, is
// paused. A task whose node is silent counts as running. A task that is away with its node is lost.
func (s *shown) ShownState(i int) string {
	e := &s.entries[i]
	switch {
	case e.state == v1.TaskAssigned && s.definition(i).GetType() == v1.TypeApproval:
		return v1.TaskPaused
	case s.Away(i) != "":
		return v1.TaskLost
	case e.extras != nil && e.extras.suspended != "" && v1.IsTaskDispatched(e.state):
		return v1.TaskPaused
	case s.notice(i) != "":
		return v1.TaskRunning
	}
	return e.state
}

// pausedReason returns the reason of a task that is shown as paused.
func (s *shown) pausedReason(i int) string {
	if s.Suspended(i) != "" {
		return v1.ReasonSuspended
	}
	return v1.ReasonApproval
}

// recount updates the counts of a task when the shown state of instance i has changed. was is the earlier state.
func (s *shown) recount(i int, was string) {
	g := s.entries[i].group
	if is := s.ShownState(i); g >= 0 && is != was {
		counts := s.FanOut(int(g)).Counts
		if counts[was]--; counts[was] == 0 {
			delete(counts, was)
		}
		counts[is]++
	}
}

// SetWaitReason shows why task i has no node.
func (s *shown) SetWaitReason(i int, reason string) {
	s.change(i, func(e *entry) { e.text = reason })
}

// Text returns what went wrong with task i, or why it waits.
func (s *shown) Text(i int) string {
	e := &s.entries[i]
	switch {
	case s.Away(i) != "":
		return s.Away(i)
	case s.ShownState(i) == v1.TaskPaused:
		return cmp.Or(s.Suspended(i), e.why)
	case v1.IsTaskWaiting(e.state) && s.IsHeld(i):
		return cmp.Or(s.HeldBy(i), "by a person")
	case e.text == "" && e.state == v1.TaskQueued && s.WaitReason != nil:
		return s.WaitReason(i)
	}
	return e.text
}
