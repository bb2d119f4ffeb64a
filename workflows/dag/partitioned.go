package dag

import (
	"errors"
	"fmt"

	v1 "switchyard/proto/switchyard/v1"
)

// This file handles groups whose instances other workflows run, and groups that are run as a partition for another workflow.

// ErrNotPartitioned means that other workflows do not run the task's instances, or that the task has not ended.
var ErrNotPartitioned = errors.New("its instances are not elsewhere, or have not all ended")

// HaltGroup stops new starts among the instances of a task, on behalf of a caller that sees more than this state. Reason is
// v1.ReasonHalt or v1.ReasonMaxFailures.
type HaltGroup struct {
	Task   int
	Reason string
}

// ResumeGroup reverses a HaltGroup: the instances that it skipped are pending again.
type ResumeGroup struct {
	Task int
}

// Requeued runs an ended task again because some of its partitioned instances were requeued. The task fans out anew; see
// State.MayRequeue.
type Requeued struct {
	Task int
}

// WithHaltedGroup restores a group for which a HaltGroup is in effect.
func WithHaltedGroup(task int, reason string) RestoreOption {
	return func(s *State) {
		if task >= 0 && task < s.graph.Len() {
			if g := s.instances(task); g != nil {
				g.halted = reason
			}
		}
	}
}

// GroupHalted returns the reason of the HaltGroup in effect for a task, or "" if there is none.
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

// MayRequeue returns why a task cannot be requeued for its partitioned instances, or nil if it can.
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

// isHeldBack reports whether no more instances of a group may start.
func (s *State) isHeldBack(g *group) bool { return g.halted != "" || s.isStopped(g) }
