package tui

import v1 "switchyard/proto/switchyard/v1"

// Widths of the columns for names that the system sets. The longest state word is "dead_letter".
const (
	stateWidth   = len(v1.TaskDeadLetter)
	maxNameWidth = 72 // a task name has at most 63 characters, and an instance also has its index
	maxNodeWidth = 24
)
