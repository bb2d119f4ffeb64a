package dag

// A Record is what a State knows of one task or instance, and all that it must be
// made to continue with it. Records can be compared with ==.
type Record struct {
	State  string // one of the State words; empty, in a Restore: pending
	Reason string // why it is in this state, as a word; may be empty
	Error  string // the same in one line for people; may be empty
	Node   string // node of the newest dispatch; empty before the first
	// Number of the newest attempt, from 0. It counts failures: being moved is not one.
	Attempt int32
	// Number of the newest request for a node, from 1; 0 before the first.
	Claim int32
	// Exit code of the newest attempt that has ended; -1 where none has or nothing ran.
	ExitCode int32
	// A failed attempt is to be repeated, and the task waits until it may be. Only
	// in state queued; such a task has no open request for a node.
	Backoff bool
	// The failure that the task is repeated for: what it ends in if it cannot be
	// repeated after all. Zero before the first failure and after the end. Of a
	// Of a task with a pending end: what it ends in if it does not complete.
	Failure Failure
	// It was requeued by hand and has not ended again: it may start although the run
	// has halted or maxFailures has stopped the task that it is an instance of.
	Retried bool
	// A node has it, or its instances, but it was cancelled or killed, or its deadline is over:
	// it is being stopped, and ends as Failure says unless it completes.
	PendingEnd bool
}

// A Failure is how an attempt failed, or how a task with a pending end ends.
type Failure struct {
	State  string // failed, killed_oom or lost; cancelled or killed of a task with a pending end
	Reason string
	Error  string
}
