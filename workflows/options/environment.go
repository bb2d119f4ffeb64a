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
	// CaptureQueueTimeout is how long a node may take to begin an environment: it makes few at once, and each takes minutes.
	CaptureQueueTimeout = 15 * time.Minute
	// CaptureHeartbeatTimeout is how long a node may be silent while it makes an environment.
	CaptureHeartbeatTimeout = time.Minute
	// captureTimeout bounds a try to store the archive of an environment, captureTries the tries.
	captureTimeout = 24 * time.Hour
	captureTries   = 5
	// archiveTry is how long each try may take to give an archive its name, or to remove it part by part, and archiveTimeout how long
	// all of them may: the store may be away.
	archiveTry     = 10 * time.Minute
	archiveTimeout = 24 * time.Hour
)

// Capture returns the options of Capture. A node that has lost what it stored stores it anew.
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

// Keep returns the options of Keep, which may be done twice.
func Keep(name string) workflow.ActivityOptions {
	return archive("give environment " + name + " its name")
}

// Discard returns the options of Discard, which may be done twice.
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
