// Package terminal puts the terminal of a person under the control of a program that runs elsewhere: raw mode, which is
// undone in every way out, the sizes of the window, and the escapes by which a person leaves.
//
//	keys ──> Input ──> escapes ─┬─> program elsewhere
//	                            └─> ~. leaves, ~? helps
//
// It imports the standard library, golang.org/x/term and nothing of this module.
package terminal
