package dag

// A Record holds the whole state of one task or instance, which is all that a restore needs. Records can be
// compared with ==.
type Record struct {
	State  string // a State word; in a Restore, empty means pending
	Reason string // why it is in this state, as a word; may be empty
	Error  string // why it is in this state, in one line for people; may be empty
	Node   string // node of the newest dispatch; empty before the first
	// Attempt is the number of the newest attempt, from 0. It counts failures; a move is not a failure.
	Attempt int32
	// Claim is the number of the newest request for a node, from 1; 0 before the first.
	Claim int32
	// ExitCode is the exit code of the newest ended attempt, or -1 if none has ended or nothing ran.
	ExitCode int32
	// Backoff is set while the task waits to retry a failed attempt. It is only set in state queued; such a task has no open
	// request for a node.
	Backoff bool
	// Failure is the failure that is being retried, with which the task ends if it cannot be retried after all. It is zero
	// before the first failure and after the end. For a task with a pending end, it is the end of the task unless it completes.
	Failure Failure
	// Retried is set if it was requeued by hand and has not ended again. It may start even if the run has halted or maxFailures
	// has stopped the task that it is an instance of.
	Retried bool
	// PendingEnd is set while a dispatched attempt or instances are being stopped because of a cancel, a kill or a deadline.
	// The task ends as in Failure unless it completes.
	PendingEnd bool
	// Final is set if it has failed and would only fail again, or if a person has ended it. A run that fails for such a task would
	// fail again, too.
	Final bool
}

// A Failure is the end of a failed attempt or of a task with a pending end.
type Failure struct {
	State  string // failed, killed_oom or lost; cancelled or killed for a task with a pending end
	Reason string
	Error  string
}
