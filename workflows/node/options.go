package node

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
)

// offlineAfter is how long a registered worker may be silent before it counts as lost.
func offlineAfter(reg *v1.NodeRegistration) time.Duration {
	if d := reg.GetOfflineAfter().AsDuration(); d > 0 {
		return d
	}
	return options.HeartbeatTimeout
}

// heartbeatOptions are the options of the activity Heartbeat. It is never
// retried: a worker that was lost registers itself. No caller waits for the one of
// an incarnation that was replaced, because that is dead.
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

// orderOptions are the options of the activities Drain and Undrain, which are
// tried until they are done or the worker is lost.
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
