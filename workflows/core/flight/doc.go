// Package flight decides how the attempt of a unit ends: a task, an instance, or the instances of a batch, which one node was
// asked to execute. It takes an [Answer], which is what is known when the activity of the attempt has ended, and the facts of
// the [Attempt], and returns the [End] of each member.
//
// The package is pure: it imports proto, workflows/core/dag and the standard library, and nothing of Temporal.
package flight
