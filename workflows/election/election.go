package election

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
)

const (
	// ownHeartbeat is how long the owner may be silent before another process takes over the placement queue.
	ownHeartbeat = 5 * time.Second
	// ownerHistoryEvents is the history length after which Owner continues as new.
	ownerHistoryEvents = 1000
)

// Owner runs as long as there is a fleet. The process that runs its one activity Own owns the placement queue. If that process
// goes silent or hands the activity over, Temporal gives it to another process, which adds no history.
func Owner(ctx workflow.Context, in *v1.OwnerInput) error {
	own := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           names.ElectionQueue,
		StartToCloseTimeout: options.Unlimited,
		HeartbeatTimeout:    ownHeartbeat,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 50 * time.Millisecond, BackoffCoefficient: 1},
		Summary:             "own the placement queue",
	})
	for workflow.GetInfo(ctx).GetCurrentHistoryLength() < ownerHistoryEvents {
		// The activity does not end by itself. If it ends regardless, a new owner starts at once.
		if err := workflow.ExecuteActivity(own, names.OwnActivity).Get(ctx, nil); err != nil && ctx.Err() != nil {
			return err
		}
	}
	return workflow.NewContinueAsNewError(ctx, names.OwnerWorkflow, in)
}
