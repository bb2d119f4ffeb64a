// Package words has what the terminal and the page say of runs and tasks in the
// same words: the sign and the note of a task, the tally of a fan-out, durations,
// and texts of strangers made safe to show.
//
// It is pure and may import proto.
package words
