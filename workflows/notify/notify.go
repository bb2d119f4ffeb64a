package notify

import (
	"errors"
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
)

// failedError is the type of the error with which Notify fails.
const failedError = "NotificationFailed"

// Notify sends the messages about an event. A target that does not accept its message delays no other one. The error names the
// targets that were not told.
func Notify(ctx workflow.Context, in *historyv1.NotifyInput) error {
	var plan historyv1.NotificationPlan
	if err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options.PlanNotification()), names.PlanNotificationActivity, in).Get(ctx, &plan); err != nil {
		return err
	}
	var sent []workflow.Future
	for _, message := range plan.GetMessages() {
		req := &historyv1.SendNotificationRequest{Notice: plan.GetNotice(), Message: message, Chain: in.GetChain()}
		sent = append(sent, workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options.SendNotification(message.GetTarget())), names.SendNotificationActivity, req))
	}
	var failed []error
	for i, future := range sent {
		if err := future.Get(ctx, nil); err != nil {
			failed = append(failed, fmt.Errorf("%s was not told: %w", plan.GetMessages()[i].GetTarget(), err))
		}
	}
	if err := errors.Join(failed...); err != nil {
		return temporal.NewNonRetryableApplicationError(err.Error(), failedError, nil)
	}
	return nil
}
