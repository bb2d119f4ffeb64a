// Package liveness reports whether the run of an attempt still waits for it. Cleaners use it to remove what attempts have left
// behind outside of the nodes.
//
// It imports proto, workflows/names, the Temporal SDK, and activities/executor.
package liveness
