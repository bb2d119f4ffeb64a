// Package flight decides about the units of a run: a task, an instance, or the instances of a batch, which share one placement. A
// [State] has each of them from the moment that its tasks may start until they have ended: admission, its lock, its request for a
// node, its attempt there, which may be detached or away, and how the attempt ends; or the approval that it waits for, or its run. The methods of a State return the [Effect]s
// that the caller carries out.
//
// How an attempt ends follows from an [Answer], which is what is known when its activity has ended, and from the facts of the
// [Attempt], which returns the [End] of each member. [Records] hold what a run remembers about tasks to decide about them.
//
// The package is pure: it imports proto, workflows/core/dag, workflows/admission, workflows/definition, workflows/eventlog, workflows/limits,
// workflows/names, workflows/phrase and workflows/structs, and nothing of Temporal.
package flight
