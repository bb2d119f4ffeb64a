package dag

import (
	"errors"
	"fmt"

	v1 "switchyard/proto/switchyard/v1"
)

// What becomes of instances that someone else carries through, and of those that are
// carried through for someone else.

// ErrNotPartitioned: the instances of the task are not elsewhere, or their task continues.
var ErrNotPartitioned = errors.New("its instances are not elsewhere, or have not all ended")

// HaltGroup lets no instance of a task start any more that has not: someone who sees
// more than this state says so. Reason is v1.ReasonHalt or v1.ReasonMaxFailures.
type HaltGroup struct {
	Task   int
	Reason string
}

// ResumeGroup takes a HaltGroup back: what was skipped for it waits again.
type ResumeGroup struct {
	Task int
}

// Requeued has a task run again whose instances are elsewhere and have ended: some of
// them were requeued. The task fans out anew; see State.MayRequeue.
type Requeued struct {
	Task int
}

// WithHaltedGroup continues with a group for which HaltGroup holds.
func WithHaltedGroup(task int, reason string) RestoreOption {
	return func(s *State) {
		if task >= 0 && task < s.graph.Len() {
			if g := s.instances(task); g != nil {
				g.halted = reason
			}
		}
	}
}

// GroupHalted is the reason of the HaltGroup that holds for a task; empty: none does.
func (s *State) GroupHalted(task int) string {
	if g := s.instances(task); g != nil {
		return g.halted
	}
	return ""
}

func (e HaltGroup) apply(s *State) {
	if !s.has(e.Task) {
		return
	}
	if g := s.instances(e.Task); g != nil && g.halted == "" && !s.cancelled {
		g.halted = e.Reason
		if !v1.IsTaskTerminal(s.tasks[e.Task].State) {
			s.stopGroup(e.Task)
		}
	}
}

func (e ResumeGroup) apply(s *State) {
	if !s.has(e.Task) {
		return
	}
	g := s.instances(e.Task)
	if g == nil || g.halted == "" {
		return
	}
	g.halted = ""
	if s.tasks[e.Task].State == v1.TaskRunning && !s.tasks[e.Task].PendingEnd && !s.cancelled && s.revive(g, v1.ReasonMaxFailures, v1.ReasonHalt) {
		s.startInstances(e.Task)
	}
}

func (e Requeued) apply(s *State) {
	if s.MayRequeue(e.Task) == nil {
		s.requeue([]int{e.Task}, "", make([]bool, s.graph.Len()))
	}
}

// MayRequeue returns why a task cannot be requeued for the sake of instances that are
// elsewhere, or nil.
func (s *State) MayRequeue(task int) error {
	switch {
	case !s.has(task):
		return ErrUnknownTask
	case s.cancelled:
		return ErrCancelled
	case !s.isPartitioned(task) || !v1.IsTaskTerminal(s.tasks[task].State):
		return fmt.Errorf("task %q: %w", s.Name(task), ErrNotPartitioned)
	}
	return nil
}

// isHeldBack reports whether no more instances of a group start.
func (s *State) isHeldBack(g *group) bool { return g.halted != "" || s.isStopped(g) }
