// Package child decides about the child workflows of a run: the runs of tasks of type run, and the partitions of large fan-outs.
// A [State] is that of one execution. Its methods take what has happened and return an [Effect] for everything that the caller has
// to do, in order. Both kinds of children start the same way:
//
//	wanted ── Prepare, for many at once ──> Prepared ──> starting ── Opened ──> open ── Ended ──> over
//	   │                                       └── there can be none ──> refused
//	   └── cancelled before its start ──> over, without an end
//
// A child outlives the execution that started it, because the parent may continue as new. Temporal reports the end of a child as
// an event to the execution that started it. Later executions wait for it with AwaitRuns, one activity for all children of a run.
// A child waits for the end of its parent the same way and is cancelled when the parent has ended without it.
//
// A run that is reset to a point after the start of a child keeps that child. A run that is reset to an earlier point starts
// another child under an ID with the chain of the reset run, and the child of the terminated execution cancels itself.
//
// The package is pure: it imports proto, workflows/core/flight and the standard library, and nothing of Temporal.
package child
