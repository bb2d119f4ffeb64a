// Package presence keeps a node in the fleet: the activity Heartbeat sends the node's snapshot to its workflow until the
// worker stops, which is how a node leaves in order, or until the server does not know the activity any more.
//
//	registered ──> beating ──(the worker stops)──> left
//	     ^             └──(the server does not know the activity)──> lost ──┐
//	     └──────────────────────────────(the worker registers again)────────┘
//
// It imports proto, workflows/names, activities/heartbeat and the Temporal SDK.
package presence
