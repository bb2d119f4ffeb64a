package nodeaccess

import (
	"context"
	"errors"
	"slices"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"

	"switchyard/activities/store/storekey"
	"switchyard/gateway/runview"
	"switchyard/workflows/names"
)

// Attempts finds the attempts that nodes are running, in Temporal.
type Attempts struct{ Client client.Client }

// Attempt identifies an attempt that a node may be running.
type Attempt struct {
	Node, Run string
	// Task is a task or instance; empty means any task of the run.
	Task string
	// Claim is the number of the dispatch; a batch has the claim of its first instance. A negative claim means any dispatch
	// of the task, of any instance.
	Claim int32
}

// Find returns the description of the run if the node is running such an attempt now, or nil if it is not.
func (a Attempts) Find(ctx context.Context, of Attempt) (*runview.Description, error) {
	desc, err := a.describeOpen(ctx, of.Run)
	if err != nil || desc == nil || desc.GetWorkflowExecutionInfo().GetType().GetName() != names.RunWorkflow {
		return nil, err
	}
	if of.isAmong(desc.GetPendingActivities()) {
		return desc, nil
	}
	for _, part := range runview.OpenParts(desc, of.Task) {
		child, err := a.describeOpen(ctx, part)
		if err != nil {
			return nil, err
		}
		if of.isAmong(child.GetPendingActivities()) {
			return desc, nil
		}
	}
	return nil, nil
}

// describeOpen returns the description of an open workflow, or nil if the workflow does not exist or has closed.
func (a Attempts) describeOpen(ctx context.Context, id string) (*runview.Description, error) {
	desc, err := a.Client.DescribeWorkflowExecution(ctx, id, "")
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !runview.IsOpen(desc.GetWorkflowExecutionInfo().GetStatus()) {
		return nil, nil
	}
	return desc, nil
}

// isAmong reports whether one of the pending activities runs the attempt.
func (of Attempt) isAmong(pending []*workflowpb.PendingActivityInfo) bool {
	task, _, _ := storekey.ParseInstanceName(of.Task)
	return slices.ContainsFunc(pending, func(p *workflowpb.PendingActivityInfo) bool {
		// A cancelled activity keeps running until its processes have exited.
		started := p.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED || p.GetState() == enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED
		name, claim, ok := names.ParseAttemptID(p.GetActivityId())
		if !started || !ok || p.GetActivityType().GetName() != names.ExecuteActivity || !isQueueOf(of.Node, p.GetActivityOptions().GetTaskQueue().GetName()) {
			return false
		}
		if of.Claim >= 0 {
			return name == of.Task && claim == of.Claim
		}
		base, _, _ := storekey.ParseInstanceName(name)
		return of.Task == "" || base == task
	})
}

// isQueueOf reports whether a task queue delivers attempts to a node.
func isQueueOf(node, queue string) bool {
	return slices.ContainsFunc(names.AttemptLanes(), func(lane names.Lane) bool { return queue == names.NodeQueue(node, lane) })
}
