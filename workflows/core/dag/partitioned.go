package dag

import "errors"

// This file handles groups whose instances other workflows run, and groups that are run as a partition for another workflow.

// ErrNotPartitioned means that other workflows do not run the task's instances, or that the task has not ended.
var ErrNotPartitioned = errors.New("its instances do not run in partitions, or have not all ended")

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
		if task >= 0 && task < s.records.graph.Len() {
			if g := s.records.instances(task); g != nil {
				g.halted = reason
			}
		}
	}
}

func (e HaltGroup) apply(s *State) {
	if s.records.has(e.Task) {
		s.fanOuts.halt(e.Task, e.Reason)
	}
}

func (e ResumeGroup) apply(s *State) {
	if s.records.has(e.Task) {
		s.retries.resume(e.Task)
	}
}

func (e Requeued) apply(s *State) {
	if s.retries.mayRequeue(e.Task) == nil {
		s.retries.requeue([]int{e.Task}, "", make([]bool, s.records.graph.Len()))
	}
}
