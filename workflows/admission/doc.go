// Package admission decides what of a run may be requested from placement now: it
// stands between the core, which says what could start, and the placement queue,
// which knows the nodes.
//
//	Add ──> waiting ── Next ──> under way ── Done ──> gone, or Add again
//	          │  ▲
//	     Hold ▼  │ Release
//	          held
//
// What waits continues by priority, then by age, as far as these let it: the run is
// not paused, the task and the fan-out it belongs to are not held, and there are
// fewer units under way than the run's maxParallel, the fan-out's concurrency, and
// what its lock can use. A unit is a task or an instance, or the instances of a
// batch, which run one after the other on one node and count once.
//
// What is blocked by its own fan-out or its own lock keeps nothing else back.
//
// The package is pure: workflow code uses it, so that the same calls have the same
// answers, always. A Queue is not safe for concurrent use. It may import nothing of
// this module and no Temporal.
package admission
