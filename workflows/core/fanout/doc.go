// Package fanout decides about the large fan-outs of a run, whose instances run in partitions, and about the context of the run,
// which partitions update too. A [State] is that of one execution. Its methods take what has happened and return an [Effect] for
// everything that the caller has to do, in order.
//
// A run cuts a fan-out that is too large for it into partitions, and opens each in a child workflow, a bounded number at a time:
//
//	not begun ── Next, Open ──> wanted ── Prepared ──> starting ── Opened ──> open ── Reported, over ──> ended
//	    │                         └── cancelled, refused: Unopened, Lost ──────────── its end: Lost ───────┤
//	    └── kept: it completed in the generation before                                                    │
//	                             a dead letter requeued, or skipped instances that may start: Next, Open <─┘
//
// A task that fans out expands first: its instances are counted at once, or by an expression.
//
// A partition reports the counts of its instances, and its run sends it orders: to end, to halt, to pause. The task ends with its
// last partition. What opens a partition takes two steps, because the caller may be interrupted while it makes the input: Next
// returns an [Opening], and Open carries it out.
//
// The package is pure: it imports proto, workflows/core/dag, workflows/core/flight, workflows/definition, workflows/names,
// workflows/phrase, workflows/structs and the standard library, and nothing of Temporal.
package fanout
