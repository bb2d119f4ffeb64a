// Package activities is the parent of the Temporal activities:
//
//	orchestrator   what a run does outside of its workflow code: conditions, placement, child runs, the store
//	taskrunner     what a node does: it runs, detaches, steers and drains attempts, and recovers those of a dead worker
//	presence       the heartbeat of a node
//	election       the leadership of a control process
//
// They share code only through leaf packages: heartbeat sends the heartbeats of activities, results decides how much of a
// result is passed inline. They build on placement, executor, logs, store, library, registry and metrics.
package activities
