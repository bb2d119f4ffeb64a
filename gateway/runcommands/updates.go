package runcommands

import (
	"context"

	"connectrpc.com/connect"

	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// resolver finds the runs that callers name. It is safe for concurrent use.
type resolver interface {
	// Resolve returns the id of the run that a text names for the caller of ctx.
	Resolve(ctx context.Context, text string) (string, error)
}

// updater sends updates to the workflows of runs. It is safe for concurrent use.
type updater interface {
	// Send sends an update to the workflow of an open run and waits for its result. The error is NotFound for an unknown task.
	Send(ctx context.Context, id, name string, arg any) error
	// FindChild returns the id of the child of a run that carries an instance, or "" if none does.
	FindChild(ctx context.Context, id, instance string) string
	// ClosedError returns the error for a request that needs an open run.
	ClosedError(ctx context.Context, id string) error
}

// updates sends the commands of callers to runs and tasks.
type updates struct {
	index   resolver
	updater updater
}

// PauseRun pauses a run: no further task starts.
func (c updates) PauseRun(ctx context.Context, req *connect.Request[v1.PauseRunRequest]) (*connect.Response[v1.PauseRunResponse], error) {
	id, err := c.send(ctx, req.Msg.GetId(), names.PauseUpdate, &historyv1.RunCommand{Reason: req.Msg.GetReason(), By: auth.From(ctx).Name})
	return respond(&v1.PauseRunResponse{Id: id}, err)
}

// ResumeRun resumes a paused run.
func (c updates) ResumeRun(ctx context.Context, req *connect.Request[v1.ResumeRunRequest]) (*connect.Response[v1.ResumeRunResponse], error) {
	id, err := c.send(ctx, req.Msg.GetId(), names.ResumeUpdate, &historyv1.RunCommand{By: auth.From(ctx).Name})
	return respond(&v1.ResumeRunResponse{Id: id}, err)
}

// HoldTask holds back a task that has not started.
func (c updates) HoldTask(ctx context.Context, req *connect.Request[v1.HoldTaskRequest]) (*connect.Response[v1.HoldTaskResponse], error) {
	id, err := c.send(ctx, req.Msg.GetId(), names.HoldUpdate, newTaskCommand(ctx, req.Msg))
	return respond(&v1.HoldTaskResponse{Id: id}, err)
}

// ReleaseTask releases a held task.
func (c updates) ReleaseTask(ctx context.Context, req *connect.Request[v1.ReleaseTaskRequest]) (*connect.Response[v1.ReleaseTaskResponse], error) {
	id, err := c.send(ctx, req.Msg.GetId(), names.ReleaseUpdate, &historyv1.TaskCommand{Task: req.Msg.GetTask(), By: auth.From(ctx).Name})
	return respond(&v1.ReleaseTaskResponse{Id: id}, err)
}

// CancelTask cancels a task or instance.
func (c updates) CancelTask(ctx context.Context, req *connect.Request[v1.CancelTaskRequest]) (*connect.Response[v1.CancelTaskResponse], error) {
	id, err := c.send(ctx, req.Msg.GetId(), names.CancelTaskUpdate, newTaskCommand(ctx, req.Msg))
	return respond(&v1.CancelTaskResponse{Id: id}, err)
}

// PauseTask suspends a running task or instance.
func (c updates) PauseTask(ctx context.Context, req *connect.Request[v1.PauseTaskRequest]) (*connect.Response[v1.PauseTaskResponse], error) {
	id, err := c.send(ctx, req.Msg.GetId(), names.PauseTaskUpdate, newTaskCommand(ctx, req.Msg))
	return respond(&v1.PauseTaskResponse{Id: id}, err)
}

// ResumeTask resumes a suspended task or instance.
func (c updates) ResumeTask(ctx context.Context, req *connect.Request[v1.ResumeTaskRequest]) (*connect.Response[v1.ResumeTaskResponse], error) {
	id, err := c.send(ctx, req.Msg.GetId(), names.ResumeTaskUpdate, &historyv1.TaskCommand{Task: req.Msg.GetTask(), By: auth.From(ctx).Name})
	return respond(&v1.ResumeTaskResponse{Id: id}, err)
}

// StopTask stops a task or instance that runs until it is stopped.
func (c updates) StopTask(ctx context.Context, req *connect.Request[v1.StopTaskRequest]) (*connect.Response[v1.StopTaskResponse], error) {
	id, err := c.send(ctx, req.Msg.GetId(), names.StopTaskUpdate, newTaskCommand(ctx, req.Msg))
	return respond(&v1.StopTaskResponse{Id: id}, err)
}

// RestartTask restarts the machine of a task or instance that runs until it is stopped.
func (c updates) RestartTask(ctx context.Context, req *connect.Request[v1.RestartTaskRequest]) (*connect.Response[v1.RestartTaskResponse], error) {
	id, err := c.send(ctx, req.Msg.GetId(), names.RestartTaskUpdate, newTaskCommand(ctx, req.Msg))
	return respond(&v1.RestartTaskResponse{Id: id}, err)
}

// KillTask kills a task or instance.
func (c updates) KillTask(ctx context.Context, req *connect.Request[v1.KillTaskRequest]) (*connect.Response[v1.KillTaskResponse], error) {
	id, err := c.send(ctx, req.Msg.GetId(), names.KillTaskUpdate, newTaskCommand(ctx, req.Msg))
	return respond(&v1.KillTaskResponse{Id: id}, err)
}

// newTaskCommand returns the task command of a request, in the name of the caller.
func newTaskCommand(ctx context.Context, req interface {
	GetTask() string
	GetReason() string
}) *historyv1.TaskCommand {
	return &historyv1.TaskCommand{Task: req.GetTask(), Reason: req.GetReason(), By: auth.From(ctx).Name}
}

// send resolves the text that names a run and sends an update to the run, or to the child of the run that
// carries the instance.
func (c updates) send(ctx context.Context, text, update string, arg any) (id string, err error) {
	id, err = c.index.Resolve(ctx, text)
	if err != nil {
		return "", err
	}
	err = c.updater.Send(ctx, id, update, arg)
	if about, ok := arg.(*historyv1.TaskCommand); ok && rpcerror.CodeOf(err) == connect.CodeNotFound {
		if child := c.updater.FindChild(ctx, id, about.GetTask()); child != "" {
			return id, c.updater.Send(ctx, child, update, arg)
		}
	}
	return id, err
}

func respond[M any](msg *M, err error) (*connect.Response[M], error) {
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(msg), nil
}
