// Package liveness reports whether the run of an attempt still waits for it, for those that clean up what attempts leave outside
// of the nodes.
//
// It imports proto, workflows/names, the Temporal SDK, and activities/executor.
package liveness
