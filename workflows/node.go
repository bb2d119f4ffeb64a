package workflows

import (
	"errors"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// Node is the registry entry of a machine: while it is open, the machine is part
// of the fleet. Its activity runs on the machine itself and beats with the
// machine's NodeSnapshot; when the beats end, so does the entry. It returns nil
// whether the node has left or was lost.
func Node(ctx workflow.Context, in *v1.NodeInput) error {
	ctx = workflow.WithActivityOptions(ctx, registrationOptions(in.GetName()))
	err := workflow.ExecuteActivity(ctx, names.HeartbeatActivity, in).Get(ctx, nil)
	if _, lost := errors.AsType[*temporal.TimeoutError](err); lost {
		return nil
	}
	return err
}
