package a2a

import (
	"context"
	"time"

	"connectrpc.com/connect"
	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// Services are the clients of the gateway's own services. The agent calls them in the name of whoever made the request.
type Services struct {
	Runs      switchyardv1connect.RunServiceClient
	Workflows switchyardv1connect.WorkflowServiceClient
}

// agent answers requests of the protocol by calling the services. It is safe for concurrent use.
type agent struct {
	Services
	now func() time.Time
}

var _ a2asrv.RequestHandler = (*agent)(nil)

// GetTask returns a run.
func (a *agent) GetTask(ctx context.Context, req *a2a.GetTaskRequest) (*a2a.Task, error) {
	if err := requireID(req.ID); err != nil {
		return nil, err
	}
	task, err := a.read(ctx, string(req.ID))
	return task, toProtocolError(ctx, err)
}

// cancelWait bounds how long CancelTask waits for the run to end; the run stops its tasks first.
const cancelWait = 10 * time.Second

// CancelTask cancels a run and returns it once it has ended. If the run takes longer than cancelWait, CancelTask returns its
// current state.
func (a *agent) CancelTask(ctx context.Context, req *a2a.CancelTaskRequest) (*a2a.Task, error) {
	if err := requireID(req.ID); err != nil {
		return nil, err
	}
	metadata := req.Metadata
	if sent, ok := ctx.Value(cancelKey{}).(map[string]any); ok {
		metadata = sent
	}
	reason, _ := metadata["reason"].(string)
	_, err := a.Runs.CancelRun(ctx, connect.NewRequest(&v1.CancelRunRequest{Id: string(req.ID), Reason: reason}))
	if connect.CodeOf(err) == connect.CodeAborted {
		return nil, errorf(a2a.ErrTaskNotCancelable, "%s", err.(*connect.Error).Message())
	}
	if err != nil {
		return nil, toProtocolError(ctx, err)
	}
	waiting, cancel := context.WithTimeout(ctx, cancelWait)
	defer cancel()
	if err := a.awaitState(waiting, string(req.ID), a2a.TaskState.Terminal); err != nil && waiting.Err() == nil {
		return nil, toProtocolError(ctx, err)
	}
	task, err := a.read(ctx, string(req.ID))
	return task, toProtocolError(ctx, err)
}

// requireID returns an error if the id of a task is empty.
func requireID(id a2a.TaskID) error {
	if id == "" {
		return errorf(a2a.ErrInvalidParams, "the request has no task `id`; ListTasks lists the tasks")
	}
	return nil
}

// errNoPush returns the error for every push notification request.
func errNoPush() error {
	return errorf(a2a.ErrPushNotificationNotSupported, "this agent does not support push notifications; use SubscribeToTask or GetTask")
}

// GetTaskPushConfig returns an error: the agent has no push notifications.
func (a *agent) GetTaskPushConfig(context.Context, *a2a.GetTaskPushConfigRequest) (*a2a.PushConfig, error) {
	return nil, errNoPush()
}

// ListTaskPushConfigs returns an error: the agent has no push notifications.
func (a *agent) ListTaskPushConfigs(context.Context, *a2a.ListTaskPushConfigRequest) (*a2a.ListTaskPushConfigResponse, error) {
	return nil, errNoPush()
}

// CreateTaskPushConfig returns an error: the agent has no push notifications.
func (a *agent) CreateTaskPushConfig(context.Context, *a2a.PushConfig) (*a2a.PushConfig, error) {
	return nil, errNoPush()
}

// DeleteTaskPushConfig returns an error: the agent has no push notifications.
func (a *agent) DeleteTaskPushConfig(context.Context, *a2a.DeleteTaskPushConfigRequest) error {
	return errNoPush()
}

// GetExtendedAgentCard returns an error: the public card already lists everything that the agent can do.
func (a *agent) GetExtendedAgentCard(context.Context, *a2a.GetExtendedAgentCardRequest) (*a2a.AgentCard, error) {
	return nil, errorf(a2a.ErrExtendedCardNotConfigured, "there is no extended agent card; the public card is at %s", CardPath)
}
