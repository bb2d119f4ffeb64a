// Package lock implements the workflow Lock: the single writer of a mutex, of a semaphore, or of the run slots of a workflow. A
// run requests a place with the signal `ask` and releases it with the same signal, so that both stay in order. The lock answers
// with the signal `granted`.
//
//	ask ──> waiting ── a place is free ──> held ── given back, or its holder has closed ──> forgotten
//	           └── refused: skip, fail, or another claim replaces it
//
// The table of holders and waiters is pure. The package imports proto, workflows/names, workflows/options and
// workflows/pending, and of Temporal only what workflow code may.
package lock
