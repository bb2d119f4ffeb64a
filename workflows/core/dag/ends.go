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

	remaining int   // number of tasks that have not ended, without instances
	failures  int   // number of tasks that ended as an unexcused failure
	first     int   // the first such task, or -1
	cancelled bool  // a Cancel or an Abort came in time
	aborted   Abort // after Cancel, only its Error is set
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
	e.remaining--
	e.ready.ended(i)
	if e.failsRun(i) && e.aborted.State != v1.RunRejected { // a rejected run has its tasks rejected, not the reverse
		e.failures++
		if e.first < 0 {
			e.first = i
			if e.halted() {
				e.haltAll()
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
	return v1.ReasonHalt, e.graph.ended(e.first, e.tasks[e.first])
}

// haltAll ends everything that may no longer start.
func (e *ends) haltAll() {
	for i := range e.tasks {
		switch {
		case e.waits(i) && !e.mayStart(i):
			e.abandon(i)
		case e.isPartitioned(i) && e.tasks[i].State == v1.TaskRunning && !e.mayStart(i):
			e.round.halt = append(e.round.halt, i)
		}
	}
}

// cancel cancels the run, unless it has been cancelled. A zero State of by means a Cancel.
func (e *ends) cancel(by Abort) {
	if !e.cancelled {
		e.cancelled, e.aborted = true, by
		e.cancelAll()
	}
}

// cancelAll ends everything that is not dispatched and stops everything that is.
func (e *ends) cancelAll() {
	for i, rec := range e.tasks {
		switch {
		case v1.IsTaskTerminal(rec.State), rec.PendingEnd:
		case e.hasOpen(i): // it ends with its instances
		case e.isDispatched(i):
			e.round.stop = append(e.round.stop, i)
		default:
			e.withdraw(i)
			rec.State, rec.Reason, rec.Error = v1.TaskCancelled, v1.ReasonRunCancelled, e.aborted.Error
			if e.aborted.State == v1.RunRejected {
				rec.State, rec.Reason = v1.TaskRejected, e.aborted.Reason
			}
			e.finish(i, rec)
		}
	}
}

// failsRun reports whether a task has ended as a failure of the run.
func (e *ends) failsRun(i int) bool {
	return v1.IsTaskFailure(e.tasks[i].State) && !e.graph.nodes[i].excused
}

// end returns how the run ended.
func (e *ends) end() *End {
	switch {
	case e.aborted.State != "":
		end := &End{State: e.aborted.State, Reason: e.aborted.Reason, Error: e.aborted.Error, Task: -1}
		if v1.IsFinalReason(end.Reason) {
			end.Final = end.Reason
		}
		return end
	case e.cancelled:
		return &End{State: v1.RunCancelled, Reason: v1.ReasonCancelled, Error: cmp.Or(e.aborted.Error, "the run was cancelled"), Task: -1}
	case e.failures > 0:
		return &End{State: v1.RunFailed, Reason: v1.ReasonTaskFailed, Error: e.runError(), Task: e.first, Final: e.finalReason()}
	}
	if at := e.cancelledAlone(); at >= 0 {
		return &End{State: v1.RunCancelled, Reason: v1.ReasonCancelled, Error: e.cancelledText(at), Task: -1}
	}
	return &End{State: v1.RunCompleted, Task: -1}
}

// cancelledAlone returns the first task that was cancelled, itself or an instance of it, in a run in which nothing succeeded. It
// returns -1 for any other run.
func (e *ends) cancelledAlone() int {
	first := -1
	for i := range e.graph.Len() {
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

// finalReason returns the reason of the first task that failed the run and would fail it again, or "" if there is none.
func (e *ends) finalReason() string {
	for i := range e.graph.Len() {
		if rec := e.tasks[i]; rec.Final && e.failsRun(i) {
			return cmp.Or(rec.Reason, rec.State)
		}
	}
	return ""
}

// halted reports whether the run has halted, so that only exempt tasks may start.
func (e *ends) halted() bool { return e.graph.halt && e.first >= 0 }

// mayStart reports whether a waiting task or instance may still start.
func (e *ends) mayStart(i int) bool {
	g := e.groupOf(i)
	return e.runAllows(i) && (g == nil || e.tasks[i].Retried || !g.isHeldBack())
}

// runAllows reports whether the run, regardless of the group, lets a waiting task or instance start.
func (e *ends) runAllows(i int) bool {
	task := e.taskOf(i)
	return !e.halted() || e.graph.nodes[task].stubborn || e.tasks[i].Retried || e.tasks[task].Retried
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

// runError returns an error that names the first task that failed the run, such as
//
//	task "test" failed: exit code 1 (attempt 3 on node-a), and 2 more
func (e *ends) runError() string {
	rec := e.tasks[e.first]
	text := e.graph.ended(e.first, rec)
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
	if more := e.failures - 1; more > 0 {
		text += fmt.Sprintf(", and %d more", more)
	}
	return text
}

// derive recounts the tasks that have not ended or have failed. It keeps the first failure if that is still a failure.
func (e *ends) derive() {
	tasks := e.graph.Len()
	e.remaining, e.failures = tasks, 0
	lowest := -1
	for i := range tasks {
		if !v1.IsTaskTerminal(e.tasks[i].State) {
			continue
		}
		e.remaining--
		if e.failsRun(i) {
			e.failures++
			if lowest < 0 {
				lowest = i
			}
		}
	}
	if e.first < 0 || e.first >= tasks || !e.failsRun(e.first) {
		e.first = lowest
	}
}
