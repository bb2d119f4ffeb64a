package runlogs

import (
	"time"

	"switchyard/activities/logs"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

// tail is the position in the log of one task, instance or batch.
type tail struct {
	task string
	info *v1.Task
	// printer is the attempt that printed the output in the task's result, or nil if the task has not ended or printed
	// nothing.
	printer *runview.Printer
	// retried is the attempt before the current one, or nil if that attempt printed nothing.
	retried *v1.Attempt
	// number is the position of the log among those of its task.
	number int
	// queue holds the attempts left to send. The first one is being sent.
	queue []logs.Attempt
	// next is the next chunk to send of the first attempt.
	next int64
	// until is when to stop waiting for the rest of the first attempt, or zero if nothing waits for it.
	until time.Time
	// known is the newest attempt that has been queued.
	known *logs.Attempt
	// then is the log that may follow the last one in the queue, if the attempt that shares that log was dispatched
	// again, or nil. unsure is a log that was queued for this reason and may never exist.
	then, unsure *logs.Attempt
	// final reports whether the queue is complete, and done whether everything has been sent.
	final, done bool
	// of is the task that the instance or batch belongs to, or nil for a task that has not fanned out.
	of *fanOut
}

// isFinal reports whether no more output will come.
func (t *tail) isFinal() bool { return t.final || t.of != nil && t.of.final }

// push appends an attempt to the queue. The attempt continues where earlier streams of the request stopped.
func (t *tail) push(a logs.Attempt, resume map[logKey]int64) {
	if len(t.queue) == 0 {
		t.next = resume[keyOf(a)]
	}
	t.queue = append(t.queue, a)
	t.known, t.then = &a, nil
}

// pop removes the first attempt from the queue once all of it has been sent.
func (t *tail) pop(resume map[logKey]int64) {
	t.queue, t.next, t.until = t.queue[1:], 0, time.Time{}
	switch {
	case len(t.queue) > 0:
		t.next = resume[keyOf(t.queue[0])]
	case t.then != nil:
		t.unsure = t.then
		t.push(*t.then, resume)
	}
}

// missing returns the message that reports the log of an attempt whose end has not arrived, or nil if the attempt need not
// have printed anything.
func (t *tail) missing(a logs.Attempt) *v1.MissingLog {
	isUnsure := t.unsure != nil && *t.unsure == a && t.next == 0
	switch {
	case t.of != nil:
		return t.of.unfinished(a)
	case isUnsure:
	case t.printer != nil && len(t.queue) == 1 && a.Attempt == t.printer.Attempt:
		return &v1.MissingLog{Task: t.task, Attempt: a.Attempt, Node: t.printer.Node, Partial: t.next > 0}
	case t.retried != nil && a.Claim == t.retried.GetClaim():
		return &v1.MissingLog{Task: t.task, Attempt: a.Attempt, Node: t.retried.GetNode(), Partial: t.next > 0}
	}
	return nil
}
