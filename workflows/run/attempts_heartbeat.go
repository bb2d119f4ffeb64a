package run

import (
	"cmp"
	"time"

	"go.temporal.io/sdk/temporal"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition"
	"switchyard/workflows/options"
)

// heartbeatTimeout returns how long the node of an attempt may be silent.
func (at *attempts) heartbeatTimeout(att *attempt) time.Duration {
	own, all := definition.HeartbeatTimeout(at.core.Definition(att.task)), at.in.GetOptions().GetHeartbeatTimeout().AsDuration()
	return cmp.Or(own, all, options.HeartbeatTimeout)
}

// silentSince returns the time since which nothing has come from the node of an attempt. beat is its last heartbeat.
func (at *attempts) silentSince(att *attempt, beat *v1.ExecuteProgress) time.Time {
	since := at.now().Add(-at.heartbeatTimeout(att))
	if sent := beat.GetSentAt(); sent != nil && sent.AsTime().Before(since) { // Temporal was unavailable when the time-out was due
		return sent.AsTime()
	}
	return since
}

// lastBeat returns the last heartbeat of an attempt, never nil. An unreadable heartbeat counts as that of a started process, to
// be on the safe side.
func lastBeat(timeout *temporal.TimeoutError) *v1.ExecuteProgress {
	if !timeout.HasLastHeartbeatDetails() {
		return &v1.ExecuteProgress{}
	}
	var progress v1.ExecuteProgress
	if timeout.LastHeartbeatDetails(&progress) != nil {
		return &v1.ExecuteProgress{Spawned: true}
	}
	return &progress
}
