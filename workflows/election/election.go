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
	// ownHeartbeat is how long the owner may be silent before another process owns the placement queue.
	ownHeartbeat = 5 * time.Second
	// ownerHistoryEvents is the size of the history after which Owner continues in a fresh one.
	ownerHistoryEvents = 1000
)

// Owner is open for as long as there is a fleet: the process that runs its one
// activity Own owns the placement queue. Temporal gives the activity to another
// process when that one is silent, or hands it over, which adds no history.
func Owner(ctx workflow.Context, in *v1.OwnerInput) error {
	own := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           names.ElectionQueue,
		StartToCloseTimeout: options.Unlimited,
		HeartbeatTimeout:    ownHeartbeat,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 50 * time.Millisecond, BackoffCoefficient: 1},
		Summary:             "own the placement queue",
	})
	for workflow.GetInfo(ctx).GetCurrentHistoryLength() < ownerHistoryEvents {
		// It does not end by itself; should it all the same, there is an owner again at once.
		if err := workflow.ExecuteActivity(own, names.OwnActivity).Get(ctx, nil); err != nil && ctx.Err() != nil {
			return err
		}
	}
	return workflow.NewContinueAsNewError(ctx, names.OwnerWorkflow, in)
}
