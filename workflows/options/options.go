package options

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

const (
	// Unlimited is used where Temporal requires a limit but none is wanted.
	Unlimited = 10 * 365 * 24 * time.Hour
	// HeartbeatTimeout is how long a node may be silent before its attempts are lost, unless the run or the node sets another
	// time.
	HeartbeatTimeout = 15 * time.Second
	// LocalTimeout is how long a local activity may take with all its attempts, including the wait for data on its way to the
	// store.
	LocalTimeout = 10 * time.Second
)

// Try returns the options of a best-effort local activity.
func Try(summary string) workflow.LocalActivityOptions {
	return workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: LocalTimeout,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumAttempts: 5},
		Summary:                summary,
	}
}
