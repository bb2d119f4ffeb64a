package dag

import v1 "switchyard/proto/switchyard/v1"

// endState returns the task state for the end of an attempt.
func endState(word string) string {
	if !v1.IsTaskTerminal(word) || word == v1.TaskSkipped || word == v1.TaskDeadLetter {
		return v1.TaskFailed // an attempt cannot end in these states
	}
	return word
}

// An effect is what the end of a task counts as for its children.
type effect uint8

const (
	neutral effect = iota
	success
	failure
)
