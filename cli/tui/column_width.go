package tui

import v1 "switchyard/proto/switchyard/v1"

// Widths of the columns that hold what the system names. State words are at
// most as long as "dead_letter".
const (
	stateWidth   = len(v1.TaskDeadLetter)
	maxNameWidth = 72 // a task has 63, and an instance its number
	maxNodeWidth = 24
)
