// Package words holds the wording that the terminal and the web page share for runs and tasks: the sign and the note of a task, the
// tally of a fan-out, durations, and untrusted texts made safe to show.
//
// It is pure and may import proto.
package words
