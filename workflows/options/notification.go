package options

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"switchyard/workflows/names"
	"switchyard/workflows/notification"
)

const (
	planTry = 30 * time.Second
	// sendTry limits one try to deliver a message, with the wait for earlier messages to its target.
	sendTry = 10 * time.Minute
)

// PlanNotification returns the options of PlanNotification, which only reads.
func PlanNotification() workflow.ActivityOptions {
	return notify(planTry, 10*time.Second, "decide whom to tell")
}

// SendNotification returns the options of SendNotification. Every try has the same idempotency key.
func SendNotification(target string) workflow.ActivityOptions {
	return notify(sendTry, 10*time.Minute, "tell "+target)
}

func notify(try, longest time.Duration, summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              names.ControlQueue,
		ScheduleToCloseTimeout: notification.Patience,
		StartToCloseTimeout:    try,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: longest},
		Summary:                summary,
	}
}
