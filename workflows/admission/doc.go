// Package admission decides which tasks of a run may be requested from placement now. It stands between the core, which says
// what could start, and the placement queue, which chooses the nodes.
//
//	Add ──> waiting ── Next ──> under way ── Done ──> gone, or Add again
//	          │  ▲
//	     Hold ▼  │ Release
//	          held
//
// Waiting tasks continue by priority, then by age, subject to these conditions: the run is not paused; neither the task nor its
// fan-out is held; and fewer units are in flight than the run's maxParallel, the fan-out's concurrency and the task's lock
// allow. A unit is a task or an instance, or the instances of a batch, which run in sequence on one node and count once.
//
// A task that is blocked by its own fan-out or lock holds up nothing else.
//
// The package is pure: workflow code uses it, so the same calls always return the same results. A Queue is not safe for
// concurrent use. It may import nothing of this module and no Temporal.
package admission
