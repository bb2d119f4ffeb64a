// Package heartbeat sends the heartbeats of activities.
//
// It uses the client rather than activity.RecordHeartbeat, which cancels an activity when the server is unreachable
// for a second and does not report whether a heartbeat was acknowledged.
//
// It imports the Temporal SDK and nothing of the project.
package heartbeat
