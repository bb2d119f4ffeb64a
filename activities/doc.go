// Package activities is the parent of the Temporal activities:
//
//	orchestrator   what a run does outside of its workflow code: conditions, placement, child runs, the store
//	taskrunner     what a node does: it runs attempts, detaches, steers and drains them, and recovers those of a dead worker
//	presence       the heartbeat of a node
//	election       the leadership of a control process
//
// They meet only in leaves: heartbeat sends the heartbeats of activities, results decides how much of an answer travels.
// placement, executor, logs, store, library, registry and metrics are what they work with.
package activities
