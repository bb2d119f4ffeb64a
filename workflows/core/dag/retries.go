package dag

import (
	"cmp"
	"fmt"

	v1 "switchyard/proto/switchyard/v1"
)

// retries decides which failed attempts are repeated, and which tasks that have ended run again.
type retries struct {
	*records
	ready   *readiness
	ends    *ends
	fanOuts *fanOuts
	starts  *starts
}

// mayRetry returns why a task or instance cannot be requeued, or nil if it can.
func (r *retries) mayRetry(i int) error {
	switch {
	case !r.has(i):
		return ErrUnknownTask
	case r.ends.isCancelled(i):
		return ErrCancelled
	case r.isClosed(i):
		return ErrInFinally
	case r.tasks[i].State != v1.TaskDeadLetter:
		return fmt.Errorf("task %q is %s: %w", r.name(i), r.tasks[i].State, ErrNotDeadLetter)
	case r.tasks[r.taskOf(i)].PendingEnd:
		return fmt.Errorf("instance %q: %w", r.name(i), ErrStopping)
	}
	return nil
}

// mayRequeue returns why a task cannot be requeued for its partitioned instances, or nil if it can.
func (r *retries) mayRequeue(task int) error {
	switch {
	case !r.has(task):
		return ErrUnknownTask
	case r.ends.isCancelled(task):
		return ErrCancelled
	case r.isClosed(task):
		return ErrInFinally
	case !r.isPartitioned(task) || !v1.IsTaskTerminal(r.tasks[task].State):
		return fmt.Errorf("task %q: %w", r.name(task), ErrNotPartitioned)
	}
	return nil
}

// isClosed reports whether a task may not run again because `finally` has begun, which has seen how the task ended.
func (r *retries) isClosed(i int) bool {
	return r.ends.finallyBegan && r.ends.phaseOf(i) != r.ends.finally
}

// repeat retries a task whose attempt has failed, or ends it. rec describes the failure.
func (r *retries) repeat(i int, rec Record) {
	retries := r.node(i).retry.retries
	switch {
	case retries == 0:
		r.ends.finish(i, rec)
	case rec.Attempt >= retries:
		if rec.Reason == "" {
			rec.Reason = rec.State // dead_letter alone gives no reason
		}
		rec.State = v1.TaskDeadLetter
		r.ends.finish(i, rec)
	case !r.ends.mayStart(i):
		r.ends.finish(i, rec)
	default:
		rec.Failure = Failure{State: rec.State, Reason: rec.Reason, Error: rec.Error}
		rec.State, rec.Backoff = v1.TaskQueued, true
		rec.Attempt++
		r.set(i, rec)
		r.round.backoff = append(r.round.backoff, i)
	}
}

// retry requeues a dead letter. If its task still runs, only that instance and those skipped for maxFailures change.
func (r *retries) retry(i int) {
	g := r.groupOf(i)
	if g == nil || v1.IsTaskTerminal(r.tasks[g.task].State) {
		r.requeue([]int{i}, "", make([]bool, r.graph.Len()))
		return
	}
	r.set(i, r.fresh(i, true))
	g.open++
	g.failed--
	if r.tasks[g.task].State != v1.TaskRunning { // its instances begin together later
		r.revive(g, v1.ReasonMaxFailures)
		return
	}
	r.ready.enqueue(i, r.tasks[i])
	if g.failed == g.maxFailures && r.revive(g, v1.ReasonMaxFailures) { // one failure fewer, so they may start again
		r.fanOuts.start(g.task)
	}
}

// attemptEnded requeues a task whose attempt has ended, or ends it.
func (r *retries) attemptEnded(e Ended) {
	rec := r.tasks[e.Task]
	rec.Reason, rec.Error = e.Reason, e.Error
	partitioned := r.isPartitioned(e.Task)
	if e.State == v1.AttemptMoved && !r.ends.isCancelled(e.Task) && !rec.PendingEnd && !partitioned {
		if r.ends.mayStart(e.Task) {
			r.ready.enqueue(e.Task, rec)
		} else {
			r.ends.abandon(e.Task)
		}
		return
	}
	rec.ExitCode, rec.Node = e.ExitCode, cmp.Or(e.Node, rec.Node)
	rec.State, rec.Final = endState(e.State), e.NoRetry
	switch {
	case rec.State == v1.TaskCompleted:
	case rec.PendingEnd:
		rec.State, rec.Reason, rec.Error, rec.Final = rec.Failure.State, rec.Failure.Reason, rec.Failure.Error, false
	case r.ends.isCancelled(e.Task):
		rec.State, rec.Reason, rec.Error = v1.TaskCancelled, v1.ReasonRunCancelled, cmp.Or(r.ends.phaseOf(e.Task).aborted.Error, rec.Error)
	case partitioned && e.State == v1.TaskSkipped:
		rec.State = v1.TaskSkipped
	}
	if v1.IsRetryableEnd(rec.State) && !e.NoRetry && !rec.PendingEnd && !partitioned {
		r.repeat(e.Task, rec)
	} else {
		r.ends.finish(e.Task, rec)
	}
}

// resume reverses a halt of a task's instances: those that it skipped are pending again.
func (r *retries) resume(task int) {
	g := r.instances(task)
	if g == nil || g.halted == "" {
		return
	}
	g.halted = ""
	if r.tasks[task].State == v1.TaskRunning && !r.tasks[task].PendingEnd && !r.ends.isCancelled(task) && r.revive(g, v1.ReasonMaxFailures, v1.ReasonHalt) {
		r.fanOuts.start(task)
	}
}

// endState returns the task state for the end of an attempt.
func endState(word string) string {
	if !v1.IsTaskTerminal(word) || word == v1.TaskSkipped || word == v1.TaskDeadLetter {
		return v1.TaskFailed // an attempt cannot end in these states
	}
	return word
}
