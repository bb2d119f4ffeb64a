package dag

// States of a task. The words are those of the data model.
const (
	StatePending  = "pending"  // waits for its parents or for its condition
	StateQueued   = "queued"   // waits for a node, or for the end of a back-off
	StateAssigned = "assigned" // dispatched to a node
	StateRunning  = "running"  // its process has started

	StateCompleted  = "completed"
	StateStopped    = "stopped"
	StateSkipped    = "skipped"
	StateFailed     = "failed"
	StateKilledOOM  = "killed_oom"
	StateLost       = "lost"
	StateKilled     = "killed"
	StateDeadLetter = "dead_letter"
	StateRejected   = "rejected"
	StateCancelled  = "cancelled"
)

// StateMoved is how an attempt ends whose task is to be placed again. It is no
// state of a task.
const StateMoved = "moved"

// Reasons that this package gives; all others come with the events.
const (
	ReasonWhen             = "when"              // skipped: the ends of the parents are not those that it waits for
	ReasonCondition        = "condition"         // skipped: the condition was false
	ReasonConditionError   = "condition_error"   // skipped: the condition could not be evaluated
	ReasonUpstream         = "upstream"          // skipped: because of how the parents ended
	ReasonHalt             = "halt"              // skipped: the run has halted
	ReasonMaxFailures      = "max_failures"      // skipped: too many other instances of the task have failed
	ReasonInstances        = "instances"         // failed: too many instances have failed
	ReasonFanOut           = "fan_out"           // failed: the number of instances could not be told
	ReasonDeadline         = "deadline"          // failed: the deadline of the task is over
	ReasonPlacementTimeout = "placement_timeout" // failed: no node could ever take it
	ReasonSystem           = "system"            // failed: the system is at fault
	ReasonRunCancelled     = "run_cancelled"     // cancelled: with its run
	ReasonTaskCancelled    = "task_cancelled"    // cancelled: alone
	ReasonKilled           = "killed"            // killed: by a person
	ReasonTaskFailed       = "task_failed"       // of a failed run
	ReasonCancelled        = "cancelled"         // of a cancelled run
)

// Terminal says whether a task in the state has ended.
func Terminal(state string) bool {
	switch state {
	case StateCompleted, StateStopped, StateSkipped, StateCancelled:
		return true
	}
	return isFailure(state)
}

// isFailure says whether the word stands for a failure of the task itself.
func isFailure(state string) bool {
	switch state {
	case StateFailed, StateKilledOOM, StateLost, StateKilled, StateDeadLetter, StateRejected:
		return true
	}
	return false
}

// endState returns the state of a task whose attempt has ended so.
func endState(word string) string {
	if !Terminal(word) || word == StateSkipped || word == StateDeadLetter {
		return StateFailed // an attempt cannot end so
	}
	return word
}

// IsFailedAttempt reports whether an attempt that ended in a state has failed. Only such an attempt is retried.
func IsFailedAttempt(state string) bool {
	return state == StateFailed || state == StateKilledOOM || state == StateLost
}

// An effect is what the end of a task counts as for its children.
type effect uint8

const (
	neutral effect = iota
	success
	failure
)
