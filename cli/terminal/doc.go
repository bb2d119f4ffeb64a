// Package terminal connects the user's terminal to a program that runs elsewhere: raw mode, which every way out restores,
// window sizes, and the escapes with which a user leaves.
//
//	keys ──> Input ──> escapes ─┬─> program elsewhere
//	                            └─> ~. leaves, ~? helps
//
// It imports the standard library, golang.org/x/term and nothing of this module.
package terminal
