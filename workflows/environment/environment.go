package environment

import (
	"cmp"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/options"
)

// failedError is the type of the error with which Environment fails.
const failedError = "EnvironmentFailed"

// Environment creates an environment and returns it once it is ready. Its error has one line for people. A cancelled workflow
// creates no environment, but one that is cancelled while the environment gets its name may still create it. An input without
// an environment ends at once: it replaces an execution that has failed.
func Environment(ctx workflow.Context, in *historyv1.CaptureRequest) (*v1.Environment, error) {
	if in.GetEnvironment() == nil {
		return &v1.Environment{}, nil
	}
	stored, err := capture(ctx, in)
	if err != nil {
		discard(ctx, in.GetEnvironment())
		return nil, failure(ctx, in.GetEnvironment(), err)
	}
	// From here on the archive may have its name, so nothing may end the workflow in between.
	kept, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	ready := &v1.Environment{}
	if err := workflow.ExecuteActivity(workflow.WithActivityOptions(kept, options.Keep(stored.GetName())), names.KeepActivity, stored).Get(kept, ready); err != nil {
		discard(ctx, stored)
		return nil, failure(ctx, stored, err)
	}
	return ready, nil
}

// capture makes the node store the archive, and returns the environment with the archive's properties.
func capture(ctx workflow.Context, in *historyv1.CaptureRequest) (*v1.Environment, error) {
	wanted := in.GetEnvironment()
	var res historyv1.CaptureResponse
	err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options.Capture(wanted)), names.CaptureActivity, in).Get(ctx, &res)
	if err == nil {
		err = ctx.Err() // the node had stored it before it received the cancellation
	}
	if err != nil {
		return nil, err
	}
	stored, got := proto.CloneOf(wanted), res.GetEnvironment()
	stored.Kind, stored.ImageId = got.GetKind(), got.GetImageId()
	stored.Size, stored.Digest, stored.Parts = got.GetSize(), got.GetDigest(), got.GetParts()
	stored.Archive = cmp.Or(got.GetArchive(), wanted.GetArchive()) // of several attempts, the complete archive
	return stored, nil
}

// discard removes the archive of a failed environment, even if the workflow has been cancelled.
func discard(ctx workflow.Context, e *v1.Environment) {
	ctx, stop := workflow.NewDisconnectedContext(ctx)
	defer stop()
	if err := workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, options.Discard(e.GetName())), names.DiscardActivity, e).Get(ctx, nil); err != nil {
		workflow.GetLogger(ctx).Error("could not remove the archive of an environment that was not created", "environment", e.GetName(), "archive", e.GetArchive(), "error", err)
	}
}

// failure translates the error of an activity to that of the workflow.
func failure(ctx workflow.Context, e *v1.Environment, err error) error {
	if ctx.Err() != nil {
		return temporal.NewCanceledError()
	}
	return temporal.NewNonRetryableApplicationError(reason(e.GetNode(), err), failedError, nil)
}

// reason returns why an activity has failed, for people.
func reason(node string, err error) string {
	var timeout *temporal.TimeoutError
	if errors.As(err, &timeout) {
		switch timeout.TimeoutType() {
		case enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START:
			return fmt.Sprintf("node %s did not start within %s: it is unreachable or creating other environments; see `switchyard nodes get %s`", node, options.CaptureQueueTimeout, node)
		case enumspb.TIMEOUT_TYPE_HEARTBEAT:
			return fmt.Sprintf("node %s was silent for %s during each attempt to store the archive", node, options.CaptureHeartbeatTimeout)
		}
	}
	var said *temporal.ApplicationError
	if errors.As(err, &said) {
		return said.Message()
	}
	return err.Error()
}
