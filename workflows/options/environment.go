package options

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// CaptureQueueTimeout is how long a node may take to begin an environment: it creates few at once, and each takes minutes.
	CaptureQueueTimeout = 15 * time.Minute
	// CaptureHeartbeatTimeout is how long a node may be silent while it creates an environment.
	CaptureHeartbeatTimeout = time.Minute
	// captureTimeout limits one attempt to store the archive of an environment, and captureTries the number of attempts.
	captureTimeout = 24 * time.Hour
	captureTries   = 5
	// archiveTry limits one attempt to give an archive its name or to remove it part by part. archiveTimeout limits all
	// attempts together, because the store may be unavailable.
	archiveTry     = 10 * time.Minute
	archiveTimeout = 24 * time.Hour
)

// Capture returns the options of Capture. A node that has lost its stored archive stores it again.
func Capture(e *v1.Environment) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              names.NodeQueue(e.GetNode(), names.EnvironmentLane),
		ScheduleToStartTimeout: CaptureQueueTimeout,
		StartToCloseTimeout:    captureTimeout,
		HeartbeatTimeout:       CaptureHeartbeatTimeout,
		WaitForCancellation:    true, // so that nothing is stored after the archive was removed
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 2 * time.Second, MaximumInterval: time.Minute, MaximumAttempts: captureTries},
		Summary:                fmt.Sprintf("make environment %s on %s", e.GetName(), e.GetNode()),
	}
}

// Keep returns the options of Keep, which is idempotent.
func Keep(name string) workflow.ActivityOptions {
	return archive("give environment " + name + " its name")
}

// Discard returns the options of Discard, which is idempotent.
func Discard(name string) workflow.ActivityOptions {
	return archive("remove the archive of environment " + name)
}

// archive returns the options of an activity on the archive of an environment.
func archive(summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              names.ControlQueue,
		ScheduleToCloseTimeout: archiveTimeout,
		StartToCloseTimeout:    archiveTry,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, MaximumInterval: 10 * time.Second},
		Summary:                summary,
	}
}
