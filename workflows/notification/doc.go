// Package notification decides which targets are told about an event of a run, and what they are told.
//
// The package is pure: it imports proto, workflows/condition, workflows/definition and workflows/names, and nothing of Temporal.
// [Plan] evaluates expressions, so workflow code must not call it.
package notification
