package dag

import (
	"cmp"
	"fmt"

	v1 "switchyard/proto/switchyard/v1"
)

// ends decides how tasks end before or without an attempt, what may no longer start, and how the run ends.
type ends struct {
	*records
	ready   *readiness
	fanOuts instanceEnder

	tasksPhase, finally *phase
	started             bool // State.Start has been called
	finallyBegan        bool // the tasks of `finally` may start
}

// phaseOf returns the phase of a task or instance.
func (e *ends) phaseOf(i int) *phase {
	if e.finally.contains(e.taskOf(i)) {
		return e.finally
	}
	return e.tasksPhase
}

// isCancelled reports whether the phase of a task or instance was cancelled.
func (e *ends) isCancelled(i int) bool { return e.phaseOf(i).cancelled }

// isOver reports whether the run has ended.
func (e *ends) isOver() bool { return e.tasksPhase.isOver() && e.finally.isOver() }

// current returns the phase that is open, or the last one.
func (e *ends) current() *phase {
	if e.finallyBegan {
		return e.finally
	}
	return e.tasksPhase
}

// instanceEnder derives the consequences of the end of an instance for its task.
type instanceEnder interface {
	instanceEnded(i int)
}

// finish ends a task or instance for good, in the state of rec.
func (e *ends) finish(i int, rec Record) {
	rec.Backoff, rec.Failure, rec.Retried, rec.PendingEnd = false, Failure{}, false, false
	rec.Final = failedInstance(rec) && (rec.Final || v1.IsEndedByPerson(rec.State))
	e.set(i, rec)
	if i >= e.graph.Len() {
		e.fanOuts.instanceEnded(i)
		return
	}
	p := e.phaseOf(i)
	p.remaining--
	e.ready.ended(i)
	if e.failsRun(i) && p.aborted.State != v1.RunRejected { // a rejected run has its tasks rejected, not the reverse
		p.failures++
		if p.first < 0 {
			p.first = i
			if e.halted(p) {
				e.haltAll(p)
			}
		}
	}
}

// skip skips a task that does not run, with its pending instances.
func (e *ends) skip(i int, reason, text string) { e.finishUnstarted(i, v1.TaskSkipped, reason, text) }

// fail ends a task that failed before it could start, and skips its pending instances.
func (e *ends) fail(i int, reason, text string) { e.finishUnstarted(i, v1.TaskFailed, reason, text) }

// finishUnstarted ends a task that has not started. It skips open instances from an earlier start.
func (e *ends) finishUnstarted(i int, state, reason, text string) {
	if e.hasOpen(i) {
		e.skipInstances(i, reason, text)
	}
	rec := e.tasks[i]
	rec.State, rec.Reason, rec.Error = state, reason, text
	rec.Final = v1.IsFinalReason(reason)
	e.finish(i, rec)
}

// abandon ends a task or instance that may no longer start, because the run has halted or its group has been stopped.
func (e *ends) abandon(i int) {
	e.withdraw(i)
	rec := e.tasks[i]
	if rec.Failure.State == "" {
		reason, text := e.abandoned(i)
		e.skip(i, reason, text)
		return
	}
	rec.State, rec.Reason, rec.Error = rec.Failure.State, rec.Failure.Reason, rec.Failure.Error
	rec.Attempt-- // the retry never came
	e.finish(i, rec)
}

// abandoned returns why a task or instance may no longer start.
func (e *ends) abandoned(i int) (reason, text string) {
	if e.runAllows(i) {
		g := e.groupOf(i)
		if g.halted == v1.ReasonHalt && !g.isStopped() {
			return v1.ReasonHalt, "the run of the task has halted"
		}
		return v1.ReasonMaxFailures, e.stoppedText(g)
	}
	first := e.phaseOf(i).first
	return v1.ReasonHalt, e.graph.ended(first, e.tasks[first])
}

// haltAll ends everything of a phase that may no longer start.
func (e *ends) haltAll(p *phase) {
	for i := range e.tasks {
		switch {
		case !p.contains(e.taskOf(i)):
		case e.waits(i) && !e.mayStart(i):
			e.abandon(i)
		case e.isPartitioned(i) && e.tasks[i].State == v1.TaskRunning && !e.mayStart(i):
			e.round.halt = append(e.round.halt, i)
		}
	}
}

// cancel cancels the tasks of the run, unless they have been cancelled or have ended, and `finally` if the run has not begun or
// now is set. A zero State of by means a Cancel.
func (e *ends) cancel(by Abort, now bool) {
	e.cancelPhase(e.tasksPhase, by)
	if now || !e.started {
		e.cancelPhase(e.finally, by)
	}
}

// cancelPhase cancels a phase, unless it has been cancelled or has ended.
func (e *ends) cancelPhase(p *phase, by Abort) {
	if !p.cancelled && !p.isOver() {
		p.cancelled, p.aborted = true, by
		e.cancelAll(p)
	}
}

// cancelAll ends everything of a phase that is not dispatched and stops everything that is.
func (e *ends) cancelAll(p *phase) {
	for i, rec := range e.tasks {
		switch {
		case !p.contains(e.taskOf(i)), v1.IsTaskTerminal(rec.State), rec.PendingEnd:
		case e.hasOpen(i): // it ends with its instances
		case e.isDispatched(i):
			e.round.stop = append(e.round.stop, i)
		default:
			e.withdraw(i)
			rec.State, rec.Reason, rec.Error = v1.TaskCancelled, v1.ReasonRunCancelled, p.aborted.Error
			if p.aborted.State == v1.RunRejected {
				rec.State, rec.Reason = v1.TaskRejected, p.aborted.Reason
			}
			e.finish(i, rec)
		}
	}
}

// failsRun reports whether a task has ended as a failure of the run.
func (e *ends) failsRun(i int) bool {
	return v1.IsTaskFailure(e.tasks[i].State) && !e.graph.nodes[i].excused
}

// end returns how the run ended: as its tasks did, unless they completed and `finally` did not.
func (e *ends) end() *End {
	end, last := e.endOf(e.tasksPhase), e.endOf(e.finally)
	switch {
	case last.State == v1.RunCompleted:
	case end.State != v1.RunCompleted:
		if last.State == v1.RunFailed {
			end.Error += "; " + last.Error
		}
	case last.State == v1.RunFailed:
		last.Reason = v1.ReasonFinallyFailed
		return last
	default:
		return last
	}
	return end
}

// endOf returns how a phase has ended.
func (e *ends) endOf(p *phase) *End {
	switch {
	case p.aborted.State != "":
		end := &End{State: p.aborted.State, Reason: p.aborted.Reason, Error: p.aborted.Error, Task: -1}
		if v1.IsFinalReason(end.Reason) {
			end.Final = end.Reason
		}
		return end
	case p.cancelled:
		return &End{State: v1.RunCancelled, Reason: v1.ReasonCancelled, Error: cmp.Or(p.aborted.Error, "the run was cancelled"), Task: -1}
	case p.failures > 0:
		return &End{State: v1.RunFailed, Reason: v1.ReasonTaskFailed, Error: e.failureText(p), Task: p.first, Final: e.finalReason(p)}
	}
	if at := e.cancelledAlone(p); at >= 0 && p == e.tasksPhase {
		return &End{State: v1.RunCancelled, Reason: v1.ReasonCancelled, Error: e.cancelledText(at), Task: -1}
	}
	return &End{State: v1.RunCompleted, Task: -1}
}

// cancelledAlone returns the first task of a phase that was cancelled, itself or an instance of it, if nothing in the phase
// succeeded. It returns -1 otherwise.
func (e *ends) cancelledAlone(p *phase) int {
	first := -1
	for i := p.from; i < p.to; i++ {
		state, isCancelled := e.tasks[i].State, e.tasks[i].State == v1.TaskCancelled
		if g := e.instances(i); g != nil && !g.partitioned {
			isCancelled = isCancelled || g.counts[v1.TaskCancelled] > 0
			if g.count > 0 && g.counts[v1.TaskCompleted]+g.counts[v1.TaskStopped] == 0 {
				state = "" // maxFailures tolerates that no instance succeeded
			}
		}
		if v1.IsTaskSuccess(state) {
			return -1
		}
		if isCancelled && first < 0 {
			first = i
		}
	}
	return first
}

// cancelledText returns a message for people about a run in which nothing succeeded and a task was cancelled.
func (e *ends) cancelledText(at int) string {
	text := e.graph.ended(at, Record{State: v1.TaskCancelled})
	if why := OneLine(e.tasks[at].Error); why != "" {
		text += ": " + why
	}
	return text + "; no task completed"
}

// finalReason returns the reason of the first task that failed its phase and would fail it again, or "" if there is none.
func (e *ends) finalReason(p *phase) string {
	for i := p.from; i < p.to; i++ {
		if rec := e.tasks[i]; rec.Final && e.failsRun(i) {
			return cmp.Or(rec.Reason, rec.State)
		}
	}
	return ""
}

// halted reports whether a phase has halted, so that only exempt tasks may start.
func (e *ends) halted(p *phase) bool { return e.graph.halt && p.first >= 0 }

// mayStart reports whether a waiting task or instance may still start.
func (e *ends) mayStart(i int) bool {
	g := e.groupOf(i)
	return e.runAllows(i) && (g == nil || e.tasks[i].Retried || !g.isHeldBack())
}

// runAllows reports whether the run, regardless of the group, lets a waiting task or instance start.
func (e *ends) runAllows(i int) bool {
	task := e.taskOf(i)
	return !e.halted(e.phaseOf(i)) || e.graph.nodes[task].stubborn || e.tasks[i].Retried || e.tasks[task].Retried
}

// setPendingEnd gives a task or instance a certain end: at once if it is waiting, or after it has been stopped if it is
// dispatched.
func (e *ends) setPendingEnd(i int, end Failure) {
	rec := e.tasks[i]
	if v1.IsTaskTerminal(rec.State) || rec.PendingEnd {
		return
	}
	g := e.instances(i)
	switch {
	case g != nil:
		rec.PendingEnd, rec.Failure = true, end
		e.set(i, rec)
		for k, first, count := 0, g.first, g.count; k < count; k++ {
			e.setPendingEnd(first+k, end)
		}
	case e.isDispatched(i):
		rec.PendingEnd, rec.Failure = true, end
		e.set(i, rec)
		e.round.stop = append(e.round.stop, i)
	default:
		e.withdraw(i)
		rec.State, rec.Reason, rec.Error = end.State, end.Reason, end.Error
		e.finish(i, rec)
	}
}

// failureText returns an error that names the first task that failed its phase, such as
//
//	task "test" failed: exit code 1 (attempt 3 on node-a), and 2 more
func (e *ends) failureText(p *phase) string {
	rec := e.tasks[p.first]
	text := e.graph.ended(p.first, rec)
	detail := OneLine(rec.Error)
	if detail == "" {
		detail = rec.Reason
	}
	if detail != "" {
		text += ": " + detail
	}
	if rec.Node != "" && rec.Reason != v1.ReasonPlacementTimeout {
		text += fmt.Sprintf(" (attempt %d on %s)", rec.Attempt, rec.Node)
	}
	if more := p.failures - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	if p == e.finally {
		text = "in finally, " + text
	}
	return text
}

// derive recounts the tasks that have not ended or have failed. It keeps the first failure if that is still a failure.
func (e *ends) derive() {
	for _, p := range []*phase{e.tasksPhase, e.finally} {
		p.remaining, p.failures = p.to-p.from, 0
		lowest := -1
		for i := p.from; i < p.to; i++ {
			if !v1.IsTaskTerminal(e.tasks[i].State) {
				continue
			}
			p.remaining--
			if e.failsRun(i) {
				p.failures++
				if lowest < 0 {
					lowest = i
				}
			}
		}
		if !p.contains(p.first) || !e.failsRun(p.first) {
			p.first = lowest
		}
	}
}
