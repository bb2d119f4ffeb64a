package election

import (
	"errors"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
)

const (
	// leadHeartbeat is how long the leader may be silent before another process takes over the placement queue.
	leadHeartbeat = 5 * time.Second
	// leaderHistoryEvents is the history length after which Leader continues as new.
	leaderHistoryEvents = 1000
)

// Leader runs as long as there is a fleet. The process that runs its one activity Lead leads. If that process
// goes silent or hands the activity over, Temporal gives it to another process, which adds no history.
func Leader(ctx workflow.Context, in *historyv1.LeaderInput) error {
	own := workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           names.ElectionQueue,
		StartToCloseTimeout: options.Unlimited,
		HeartbeatTimeout:    leadHeartbeat,
		RetryPolicy:         &temporal.RetryPolicy{InitialInterval: 50 * time.Millisecond, BackoffCoefficient: 1},
		WaitForCancellation: true,
		Summary:             "own the placement queue",
	})
	for !isTooLong(ctx) {
		// The activity does not end by itself. If it ends regardless, a new leader starts at once.
		term, end := workflow.WithCancel(own)
		lead := workflow.ExecuteActivity(term, names.LeadActivity)
		err := workflow.Await(ctx, func() bool { return lead.IsReady() || isTooLong(ctx) }) // signals lengthen the history
		end()
		if err = errors.Join(err, lead.Get(ctx, nil)); err != nil && ctx.Err() != nil {
			return err
		}
	}
	return workflow.NewContinueAsNewError(ctx, names.LeaderWorkflow, in)
}

func isTooLong(ctx workflow.Context) bool {
	return workflow.GetInfo(ctx).GetCurrentHistoryLength() >= leaderHistoryEvents
}
