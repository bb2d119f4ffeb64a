// Package presence keeps a node in the fleet. Its activity Heartbeat sends the node's snapshots to the node's workflow
// until the worker stops, which is how a node leaves in order, or until the server no longer knows the activity.
//
//	registered ──> beating ──(the worker stops)──> left, or suspended
//	     ^             └──(the server does not know the activity)──> lost ──┐
//	     └──────────────────────────────(the worker registers again)────────┘
//
// It imports proto, workflows/names, activities/heartbeat and the Temporal SDK.
package presence
