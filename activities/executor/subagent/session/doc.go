// Package session holds the state of an agent, as a journal of entries from which a later attempt continues.
//
//	reply ──> call began ──> call ended ──> ... ──> reply
//	             │ no end: its outcome is unknown, and the model is told so
//
// It is pure: it may import proto and activities/executor/subagent/model.
package session
