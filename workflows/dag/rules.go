package dag

import (
	"cmp"
	"fmt"
	"slices"

	v1 "switchyard/proto/switchyard/v1"
)

// settle informs children about parents that have settled, and repeats this for the tasks that settle as a result. It uses a
// list rather than recursion because chains are long.
func (s *State) settle() {
	for next := 0; next < len(s.settled); next++ {
		i := s.settled[next]
		effect := s.progress[i].effect
		for _, c := range s.graph.nodes[i].children {
			s.progress[c].learn(effect)
			switch {
			case s.progress[c].open > 0:
			case s.tasks[c].State == v1.TaskPending:
				s.ready(c)
			case v1.IsTaskTerminal(s.tasks[c].State): // halt or Cancel ended it before its parents
				s.settled = append(s.settled, c)
			default: // it had begun when a parent was requeued
			}
		}
	}
	s.settled = s.settled[:0]
}

// learn counts a parent that has settled.
func (p *progress) learn(parent effect) {
	p.open--
	switch parent {
	case success:
		p.succeeded++
	case failure:
		p.failed++
	}
}

// ready decides whether a task whose parents have settled starts, is skipped, or has its condition evaluated.
func (s *State) ready(i int) {
	n, p := &s.graph.nodes[i], &s.progress[i]
	succeeded, failed := int(p.succeeded), int(p.failed)
	neutral := len(n.parents) - succeeded - failed
	holds := n.when.holds(succeeded, neutral, failed)
	switch {
	case n.when != "" && !holds:
		s.skip(i, v1.ReasonWhen, n.when.missed(succeeded, neutral, failed))
	case n.conditional && n.when == "" && !n.always && s.failedGuard(i) >= 0:
		s.skip(i, v1.ReasonUpstream, s.upstream(i))
	case n.conditional:
		s.ask(i, condition)
	case holds, n.always, len(n.parents) == 0:
		s.begin(i)
	default:
		s.skip(i, v1.ReasonUpstream, s.upstream(i))
	}
}

// readyAll decides about all pending tasks without a decision so far.
func (s *State) readyAll() {
	for i := range s.progress {
		if s.tasks[i].State == v1.TaskPending && s.progress[i].open == 0 && s.progress[i].asked == nothing {
			s.ready(i)
			s.settle()
		}
	}
}

// ask asks a question about a pending task.
func (s *State) ask(i int, q question) {
	s.progress[i].asked = q
	if q == condition {
		s.round.evaluate = append(s.round.evaluate, i)
	} else {
		s.round.expand = append(s.round.expand, i)
	}
}

// enqueue requests a node under a new claim.
func (s *State) enqueue(i int, rec Record) {
	if i < s.graph.Len() {
		s.progress[i].asked = nothing
	}
	rec.State, rec.Backoff = v1.TaskQueued, false
	rec.Claim++
	s.set(i, rec)
	s.round.place = append(s.round.place, i)
}

// repeat retries a task whose attempt has failed, or ends it. rec describes the failure.
func (s *State) repeat(i int, rec Record) {
	retries := s.node(i).retry.retries
	switch {
	case retries == 0:
		s.finish(i, rec)
	case rec.Attempt >= retries:
		if rec.Reason == "" {
			rec.Reason = rec.State // dead_letter alone gives no reason
		}
		rec.State = v1.TaskDeadLetter
		s.finish(i, rec)
	case !s.mayStart(i):
		s.finish(i, rec)
	default:
		rec.Failure = Failure{State: rec.State, Reason: rec.Reason, Error: rec.Error}
		rec.State, rec.Backoff = v1.TaskQueued, true
		rec.Attempt++
		s.set(i, rec)
		s.round.backoff = append(s.round.backoff, i)
	}
}

// IsRetryable reports whether a task has a retry policy with retries, used up or not.
func (s *State) IsRetryable(i int) bool { return s.node(i).retry.retries > 0 }

// RetriesLeft reports whether a task would be retried if its attempt failed now.
func (s *State) RetriesLeft(i int) bool {
	return s.Task(i).Attempt < s.node(i).retry.retries && s.mayStart(i)
}

// skip skips a task that does not run, with its pending instances.
func (s *State) skip(i int, reason, text string) { s.finishUnstarted(i, v1.TaskSkipped, reason, text) }

// fail ends a task that failed before it could start, and skips its pending instances.
func (s *State) fail(i int, reason, text string) { s.finishUnstarted(i, v1.TaskFailed, reason, text) }

// finishUnstarted ends a task that has not started. It skips open instances from an earlier start.
func (s *State) finishUnstarted(i int, state, reason, text string) {
	if s.hasOpen(i) {
		s.skipInstances(i, reason, text)
	}
	rec := s.tasks[i]
	rec.State, rec.Reason, rec.Error = state, reason, text
	s.finish(i, rec)
}

// abandon ends a task or instance that may no longer start, because the run has halted or its group has been stopped.
func (s *State) abandon(i int) {
	s.withdraw(i)
	rec := s.tasks[i]
	if rec.Failure.State == "" {
		reason, text := s.abandoned(i)
		s.skip(i, reason, text)
		return
	}
	rec.State, rec.Reason, rec.Error = rec.Failure.State, rec.Failure.Reason, rec.Failure.Error
	rec.Attempt-- // the retry never came
	s.finish(i, rec)
}

// abandoned returns why a task or instance may no longer start.
func (s *State) abandoned(i int) (reason, text string) {
	if s.runAllows(i) {
		g := s.groupOf(i)
		if g.halted == v1.ReasonHalt && !s.isStopped(g) {
			return v1.ReasonHalt, "the run of the task has halted"
		}
		return v1.ReasonMaxFailures, s.stopped(g)
	}
	return v1.ReasonHalt, s.graph.ended(s.first, s.tasks[s.first])
}

// finish ends a task or instance for good, in the state of rec.
func (s *State) finish(i int, rec Record) {
	rec.Backoff, rec.Failure, rec.Retried, rec.PendingEnd = false, Failure{}, false, false
	s.set(i, rec)
	if i >= s.graph.Len() {
		s.instanceEnded(i)
		return
	}
	s.remaining--
	p := &s.progress[i]
	p.asked = nothing
	p.effect = s.effectOf(i)
	if p.open == 0 {
		s.settled = append(s.settled, i)
	}
	if s.failsRun(i) {
		s.failures++
		if s.first < 0 {
			s.first = i
			if s.halted() {
				s.haltAll()
			}
		}
	}
}

// haltAll ends everything that may no longer start.
func (s *State) haltAll() {
	for i := range s.tasks {
		switch {
		case s.waits(i) && !s.mayStart(i):
			s.abandon(i)
		case s.isPartitioned(i) && s.tasks[i].State == v1.TaskRunning && !s.mayStart(i):
			s.round.halt = append(s.round.halt, i)
		}
	}
}

// cancelAll ends everything that is not dispatched and stops everything that is.
func (s *State) cancelAll() {
	for i, rec := range s.tasks {
		switch {
		case v1.IsTaskTerminal(rec.State), rec.PendingEnd:
		case s.hasOpen(i): // it ends with its instances
		case s.isDispatched(i):
			s.round.stop = append(s.round.stop, i)
		default:
			s.withdraw(i)
			rec.State, rec.Reason, rec.Error = v1.TaskCancelled, v1.ReasonRunCancelled, s.aborted.Error
			s.finish(i, rec)
		}
	}
}

// effectOf returns what an ended task counts as for its children.
func (s *State) effectOf(i int) effect {
	rec := s.tasks[i]
	switch {
	case v1.IsTaskSuccess(rec.State):
		return success
	case rec.State == v1.TaskSkipped:
		own := rec.Reason == v1.ReasonCondition || rec.Reason == v1.ReasonWhen
		if own || rec.Reason == v1.ReasonUpstream && s.progress[i].failed == 0 {
			return neutral
		}
		return failure
	}
	if s.graph.nodes[i].excused {
		return success
	}
	return failure
}

// failsRun reports whether a task has ended as a failure of the run.
func (s *State) failsRun(i int) bool {
	return v1.IsTaskFailure(s.tasks[i].State) && !s.graph.nodes[i].excused
}

// end returns how the run ended.
func (s *State) end() *End {
	switch {
	case s.aborted.State != "":
		return &End{State: s.aborted.State, Reason: s.aborted.Reason, Error: s.aborted.Error, Task: -1}
	case s.cancelled:
		return &End{State: v1.RunCancelled, Reason: v1.ReasonCancelled, Error: cmp.Or(s.aborted.Error, "the run was cancelled"), Task: -1}
	case s.failures > 0:
		return &End{State: v1.RunFailed, Reason: v1.ReasonTaskFailed, Error: s.runError(), Task: s.first}
	}
	return &End{State: v1.RunCompleted, Task: -1}
}

// upstream returns a message for people about why a task is skipped after its parents have settled. It names the task at the
// root of the skip, not one that was skipped in between.
func (s *State) upstream(i int) string {
	n := &s.graph.nodes[i]
	// Without a failure all parents are neutral, so any parent will do.
	at := s.failedGuard(i)
	if at < 0 {
		at = n.parents[0]
	}
	parent := s.tasks[at]
	text := parent.Error
	if parent.State != v1.TaskSkipped || parent.Reason != v1.ReasonUpstream && parent.Reason != v1.ReasonHalt {
		text = s.graph.ended(at, parent)
	}
	if n.conditional {
		text = fmt.Sprintf("%s, and the condition of %q does not mention %q", text, n.name, s.graph.Name(at))
	}
	return text
}

// failedGuard returns the first parent whose failure keeps a task from starting, or -1.
func (s *State) failedGuard(i int) int {
	if s.progress[i].failed == 0 {
		return -1
	}
	guards := s.graph.nodes[i].guards
	if at := slices.IndexFunc(guards, func(p int) bool { return s.progress[p].effect == failure }); at >= 0 {
		return guards[at]
	}
	return -1
}
