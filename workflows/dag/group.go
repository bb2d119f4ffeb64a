package dag

import (
	"fmt"

	v1 "switchyard/proto/switchyard/v1"
)

// instanceEnded counts an instance that has ended and updates its group.
func (s *State) instanceEnded(i int) {
	g := s.groupOf(i)
	task := g.task
	g.open--
	if failedInstance(s.tasks[i]) {
		g.failed++
		if g.failed == s.graph.nodes[task].maxFailures+1 && !s.cancelled && !s.tasks[task].PendingEnd {
			s.stopGroup(task)
		}
	}
	if s.instances(task).open == 0 && !v1.IsTaskTerminal(s.tasks[task].State) {
		s.endGroup(task)
	}
}

// failedInstance reports whether an instance has ended as a failure of its task.
func failedInstance(rec Record) bool {
	return v1.IsTaskFailure(rec.State) || rec.State == v1.TaskCancelled
}

// isStopped reports whether more instances of a group have failed than maxFailures allows.
func (s *State) isStopped(g *group) bool { return g.failed > s.graph.nodes[g.task].maxFailures }

// stopGroup ends all instances of a group that have not started or that wait for approval.
func (s *State) stopGroup(task int) {
	g := *s.instances(task)
	for i := g.first; i < g.first+g.count; i++ {
		switch {
		case s.waits(i) && !s.mayStart(i):
			s.abandon(i)
		case s.isDispatched(i) && s.node(i).def.GetType() == v1.TypeApproval:
			s.setPendingEnd(i, Failure{State: v1.TaskSkipped, Reason: v1.ReasonMaxFailures, Error: s.stopped(&g)})
		}
	}
}

// endGroup ends a task whose instances have all ended. It visits each instance once.
func (s *State) endGroup(task int) {
	g := *s.instances(task)
	rec := s.tasks[task]
	rec.ExitCode = 0
	ran := false // the exit code is that of an instance that ran
	succeeded, failed, skipped := 0, -1, -1
	for i := g.first; i < g.first+g.count; i++ {
		one := &s.tasks[i]
		switch {
		case v1.IsTaskSuccess(one.State):
			succeeded++
		case one.State == v1.TaskSkipped && skipped < 0:
			skipped = i
		case failedInstance(*one) && failed < 0:
			failed = i
		}
		switch {
		case ran || one.ExitCode == 0:
		case one.ExitCode == -1:
			rec.ExitCode = -1
		default:
			rec.ExitCode, ran = one.ExitCode, true
		}
	}
	rec.Reason, rec.Error = "", ""
	switch {
	case succeeded == g.count:
		rec.State = v1.TaskCompleted
	case rec.PendingEnd:
		rec.State, rec.Reason, rec.Error = rec.Failure.State, rec.Failure.Reason, rec.Failure.Error
	case s.cancelled:
		rec.State, rec.Reason, rec.Error = v1.TaskCancelled, v1.ReasonRunCancelled, s.aborted.Error
	case s.isStopped(&g):
		rec.State, rec.Reason, rec.Error = v1.TaskFailed, v1.ReasonInstances, s.instancesError(&g, failed)
	case skipped >= 0:
		rec.State, rec.Reason, rec.Error = v1.TaskSkipped, s.tasks[skipped].Reason, s.tasks[skipped].Error
	default:
		rec.State = v1.TaskCompleted
	}
	s.finish(task, rec)
}

// instancesError returns a message for people about the failure of a group, such as
//
//	2 of 10 instances failed: each[3]: exit code 1
//
// first is the failed instance with the lowest number.
func (s *State) instancesError(g *group, first int) string {
	rec := s.tasks[first]
	detail := OneLine(rec.Error)
	if detail == "" {
		detail = rec.Reason
	}
	if detail == "" {
		detail = rec.State
	}
	return fmt.Sprintf("%d of %d instances failed: %s: %s", g.failed, g.count, s.Name(first), detail)
}

// stopped returns a message for people about why an instance of a group can no longer start.
func (s *State) stopped(g *group) string {
	return fmt.Sprintf("too many instances of task %q have failed (maxFailures: %d)", s.graph.Name(g.task), s.graph.nodes[g.task].maxFailures)
}

// skipInstances skips the open instances of a task that fanned out before and does not start now.
func (s *State) skipInstances(task int, reason, text string) {
	g := s.instances(task)
	g.open = 0
	for i := g.first; i < g.first+g.count; i++ {
		if rec := s.tasks[i]; !v1.IsTaskTerminal(rec.State) {
			rec = Record{State: v1.TaskSkipped, Reason: reason, Error: text, Claim: rec.Claim, ExitCode: -1}
			s.set(i, rec)
		}
	}
}
