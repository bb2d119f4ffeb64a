package runlogs

import (
	"switchyard/activities/logs"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

// tail is how far the log of one task, instance or batch has been sent.
type tail struct {
	task string
	info *v1.Task
	// printer is the attempt that printed what its result holds, or nil if it has not ended or nothing was printed.
	printer *runview.Printer
	// number is the place of the log among those of its task.
	number int
	// queue are the attempts still to send; the first is being sent.
	queue []logs.Attempt
	// next is the chunk of the first attempt to continue from.
	next int64
	// known is the newest attempt that has been in the queue.
	known *logs.Attempt
	// then is the log that may follow the last one in the queue once that has ended, if the attempt that shares it was
	// dispatched again, or nil. unsure is the log that was put into the queue for this reason: it may never exist.
	then, unsure *logs.Attempt
	// final: the queue will not grow any more. done: all of it is sent.
	final, done bool
	// of is the task whose instance or batch it is, or nil if it is a task of its own.
	of *fanOut
}

// isFinal reports whether nothing more will be printed.
func (t *tail) isFinal() bool { return t.final || t.of != nil && t.of.final }

// push adds an attempt to the queue, and continues where earlier streams of the request came to.
func (t *tail) push(a logs.Attempt, resume map[logKey]int64) {
	if len(t.queue) == 0 {
		t.next = resume[keyOf(a)]
	}
	t.queue = append(t.queue, a)
	t.known, t.then = &a, nil
}

// pop takes the first attempt off the queue, all of which has been sent.
func (t *tail) pop(resume map[logKey]int64) {
	t.queue, t.next = t.queue[1:], 0
	switch {
	case len(t.queue) > 0:
		t.next = resume[keyOf(t.queue[0])]
	case t.then != nil:
		t.unsure = t.then
		t.push(*t.then, resume)
	}
}
