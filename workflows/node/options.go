package node

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
)

// offlineAfter returns how long a registered worker may be silent before it counts as lost.
func offlineAfter(reg *historyv1.NodeRegistration) time.Duration {
	if d := reg.GetOfflineAfter().AsDuration(); d > 0 {
		return d
	}
	return options.HeartbeatTimeout
}

// heartbeatOptions returns the options of the activity Heartbeat. It is never retried, because a lost worker registers itself
// again. No caller waits for the Heartbeat of a replaced incarnation, because that incarnation is dead.
func heartbeatOptions(node string, offline time.Duration) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              names.NodeQueue(node, names.ControlLane),
		ScheduleToStartTimeout: offline,
		StartToCloseTimeout:    options.Unlimited,
		HeartbeatTimeout:       offline,
		RetryPolicy:            &temporal.RetryPolicy{MaximumAttempts: 1},
		Summary:                "node " + node + " is up",
	}
}

// orderOptions returns the options of the activities Drain and Undrain, which are retried until they succeed or the worker is
// lost.
func orderOptions(node string, offline time.Duration) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:           names.NodeQueue(node, names.ControlLane),
		StartToCloseTimeout: options.Unlimited,
		HeartbeatTimeout:    offline,
		WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{
			InitialInterval:    100 * time.Millisecond,
			BackoffCoefficient: 2,
			MaximumInterval:    2 * time.Second,
		},
		Summary: "drain node " + node,
	}
}
