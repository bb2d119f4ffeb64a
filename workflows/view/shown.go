package view

import (
	"cmp"

	v1 "switchyard/proto/switchyard/v1"
)

// shownInstances is the most instances of a task that the status shows; the query "instances" shows all.
const shownInstances = 1000

// shown turns the state of a task in the core into the state that people see, and explains it.
type shown struct {
	*table
}

// state returns the state of task i as people see it.
func (s *shown) state(i int) string {
	return s.records.Of(i).Shown(s.entries[i].state, s.definition(i).GetType())
}

// away returns why task i is lost until its node is back, or "" if it is not lost.
func (s *shown) away(i int) string {
	if v1.IsTaskDispatched(s.entries[i].state) {
		return s.records.Of(i).Away
	}
	return ""
}

// notice returns what delays the attempt of task i, or "" if nothing is known to.
func (s *shown) notice(i int) string {
	if s.entries[i].state == v1.TaskAssigned {
		return s.records.Of(i).Silent
	}
	return ""
}

// pausedReason returns the reason of a task that is shown as paused.
func (s *shown) pausedReason(i int) string {
	if s.records.Of(i).Suspended != "" {
		return v1.ReasonSuspended
	}
	return v1.ReasonApproval
}

// recount updates the counts of a task when the shown state of instance i may have changed.
func (s *shown) recount(i int) {
	e := &s.entries[i]
	if is := s.state(i); e.group >= 0 && is != e.counted {
		counts := s.fanOut(int(e.group)).counts
		if counts[e.counted]--; counts[e.counted] == 0 {
			delete(counts, e.counted)
		}
		counts[is]++
		e.counted = is
	}
}

// RecordChanged shows that the record of task i has changed.
func (s *shown) RecordChanged(i int) {
	s.recount(i)
	s.Touch(i)
}

// SetWaitReason shows why task i has no node.
func (s *shown) SetWaitReason(i int, reason string) {
	if s.entries[i].text != reason {
		s.change(i, func(e *entry) { e.text = reason })
	}
}

// Text returns what went wrong with task i, or why it waits.
func (s *shown) Text(i int) string {
	e := &s.entries[i]
	switch {
	case s.away(i) != "":
		return s.away(i)
	case s.state(i) == v1.TaskPaused:
		return cmp.Or(s.records.Of(i).Suspended, e.why)
	case v1.IsTaskWaiting(e.state) && s.records.Of(i).Held:
		return cmp.Or(s.records.Of(i).HeldBy, "by a person")
	case e.text == "" && e.state == v1.TaskQueued:
		return s.units.WaitReason(i)
	}
	return e.text
}
