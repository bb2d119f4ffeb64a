package heartbeat

import (
	"context"
	"errors"
	"time"

	activitypb "go.temporal.io/api/activity/v1"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/fieldmaskpb"
)

// ErrRefused means that the server does not let this process change the time-outs of activities: it does not know the call, or
// does not allow it.
var ErrRefused = errors.New("the server does not change the heartbeat time-out of a running activity")

// Activity identifies an activity of one execution of a workflow. Activity ids repeat among the executions of a workflow, so
// RunID must not be empty.
type Activity struct {
	Namespace  string `json:"namespace"`
	WorkflowID string `json:"workflowId"`
	RunID      string `json:"runId"`
	ID         string `json:"id"`
}

// SetTimeout changes the heartbeat time-out of a running activity and returns the one that then applies. It takes effect at once,
// and adds nothing to the history. Source: the call UpdateActivityOptions of Temporal.
//
// The error is ErrGone if the server does not know the activity, and ErrRefused if it never changes the time-out. After any other
// error it is unknown which time-out applies; the call may be repeated.
func SetTimeout(ctx context.Context, c client.Client, a Activity, timeout time.Duration) (time.Duration, error) {
	return update(ctx, c, a, &activitypb.ActivityOptions{HeartbeatTimeout: durationpb.New(timeout)}, "heartbeat_timeout")
}

// TimeoutOf returns the heartbeat time-out of a running activity. Its errors are those of SetTimeout.
func TimeoutOf(ctx context.Context, c client.Client, a Activity) (time.Duration, error) {
	return update(ctx, c, a, &activitypb.ActivityOptions{}) // without a path it changes nothing, and the answer names all options
}

func update(ctx context.Context, c client.Client, a Activity, options *activitypb.ActivityOptions, paths ...string) (time.Duration, error) {
	res, err := c.WorkflowService().UpdateActivityOptions(ctx, &workflowservice.UpdateActivityOptionsRequest{
		Namespace: a.Namespace, Execution: &commonpb.WorkflowExecution{WorkflowId: a.WorkflowID, RunId: a.RunID},
		Activity:        &workflowservice.UpdateActivityOptionsRequest_Id{Id: a.ID},
		ActivityOptions: options, UpdateMask: &fieldmaskpb.FieldMask{Paths: paths},
	})
	if err != nil {
		return 0, meaning(err)
	}
	return res.GetActivityOptions().GetHeartbeatTimeout().AsDuration(), nil
}

// meaning returns ErrGone or ErrRefused if an error of the server means that, and otherwise the error itself.
func meaning(err error) error {
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return ErrGone
	}
	if _, unknown := errors.AsType[*serviceerror.Unimplemented](err); unknown {
		return ErrRefused
	}
	if _, denied := errors.AsType[*serviceerror.PermissionDenied](err); denied {
		return ErrRefused
	}
	if _, invalid := errors.AsType[*serviceerror.InvalidArgument](err); invalid {
		return ErrRefused
	}
	return err
}
