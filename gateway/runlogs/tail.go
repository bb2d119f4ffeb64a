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
	// final: the queue will not grow any more. done: all of it is sent.
	final, done bool
	// of is the task whose instance or batch it is, or nil if it is a task of its own.
	of *fanOut
}

// isFinal reports whether nothing more will be printed.
func (t *tail) isFinal() bool { return t.final || t.of != nil && t.of.final }
