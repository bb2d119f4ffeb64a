// Package heartbeat sends the heartbeats of activities.
//
// It goes through the client and not through activity.RecordHeartbeat, which cancels an activity when the server was
// away for a second, and which does not report whether a heartbeat was acknowledged.
//
// It imports the Temporal SDK and nothing of the project.
package heartbeat
