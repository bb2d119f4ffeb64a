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
	// sendTry limits one try to deliver a message. It also bounds the delay of a message if the server gives the try to a worker that
	// does not learn of it.
	sendTry = time.Minute
)

// NotifyPriority returns the priority of workflows that tell people about events: work of runs goes before.
func NotifyPriority() temporal.Priority { return temporal.Priority{PriorityKey: priorityKey(0)} }

// PlanNotification returns the options of PlanNotification, which only reads.
func PlanNotification() workflow.ActivityOptions {
	return notify(planTry, "decide whom to tell")
}

// SendNotification returns the options of SendNotification. Every try has the same idempotency key. The activity says itself when it is
// to be tried again.
func SendNotification(target string) workflow.ActivityOptions {
	return notify(sendTry, "tell "+target)
}

func notify(try time.Duration, summary string) workflow.ActivityOptions {
	return workflow.ActivityOptions{
		TaskQueue:              names.ControlQueue,
		ScheduleToCloseTimeout: notification.Patience,
		StartToCloseTimeout:    try,
		RetryPolicy:            &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second},
		Summary:                summary,
	}
}
