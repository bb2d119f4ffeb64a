package options

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
)

const (
	// Unlimited stands where Temporal requires a limit and there is none.
	Unlimited = 10 * 365 * 24 * time.Hour
	// HeartbeatTimeout is how long a node may be silent before its attempts are lost, unless the run or the node says
	// otherwise.
	HeartbeatTimeout = 15 * time.Second
	// LocalTimeout is how long a local activity may take with all its tries. It includes the wait for what is on its
	// way to the store.
	LocalTimeout = 10 * time.Second
)

// Try returns the options of a local activity that its workflow can do without.
func Try(summary string) workflow.LocalActivityOptions {
	return workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: LocalTimeout,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: 100 * time.Millisecond, MaximumAttempts: 5},
		Summary:                summary,
	}
}
