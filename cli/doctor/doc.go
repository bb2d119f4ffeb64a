// Package doctor checks what a machine needs for the roles of Switchyard, and says what to do about what is missing.
//
//	Examine ──> observations of the machine, of Temporal and of the gateway ──> judgments ──> findings
//
// A check observes and hands what it saw to a judgment, a pure function that returns a finding. The checks change nothing.
//
// It may import everything below package cli, and of that client and exit.
package doctor
