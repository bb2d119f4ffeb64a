package gateway

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"go.temporal.io/api/serviceerror"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// PauseRun pauses a run: no further task starts.
func (g *Gateway) PauseRun(ctx context.Context, req *connect.Request[v1.PauseRunRequest]) (*connect.Response[v1.PauseRunResponse], error) {
	id, err := g.control(ctx, req.Msg.GetId(), names.PauseUpdate, &v1.RunCommand{Reason: req.Msg.GetReason(), By: actor(ctx)})
	return answered(&v1.PauseRunResponse{Id: id}, err)
}

// ResumeRun resumes a paused run.
func (g *Gateway) ResumeRun(ctx context.Context, req *connect.Request[v1.ResumeRunRequest]) (*connect.Response[v1.ResumeRunResponse], error) {
	id, err := g.control(ctx, req.Msg.GetId(), names.ResumeUpdate, &v1.RunCommand{By: actor(ctx)})
	return answered(&v1.ResumeRunResponse{Id: id}, err)
}

// HoldTask holds back a task that has not started.
func (g *Gateway) HoldTask(ctx context.Context, req *connect.Request[v1.HoldTaskRequest]) (*connect.Response[v1.HoldTaskResponse], error) {
	id, err := g.control(ctx, req.Msg.GetId(), names.HoldUpdate, command(ctx, req.Msg))
	return answered(&v1.HoldTaskResponse{Id: id}, err)
}

// ReleaseTask releases a held task.
func (g *Gateway) ReleaseTask(ctx context.Context, req *connect.Request[v1.ReleaseTaskRequest]) (*connect.Response[v1.ReleaseTaskResponse], error) {
	id, err := g.control(ctx, req.Msg.GetId(), names.ReleaseUpdate, &v1.TaskCommand{Task: req.Msg.GetTask(), By: actor(ctx)})
	return answered(&v1.ReleaseTaskResponse{Id: id}, err)
}

// CancelTask cancels a task or instance.
func (g *Gateway) CancelTask(ctx context.Context, req *connect.Request[v1.CancelTaskRequest]) (*connect.Response[v1.CancelTaskResponse], error) {
	id, err := g.control(ctx, req.Msg.GetId(), names.CancelTaskUpdate, command(ctx, req.Msg))
	return answered(&v1.CancelTaskResponse{Id: id}, err)
}

// PauseTask suspends a running task or instance.
func (g *Gateway) PauseTask(ctx context.Context, req *connect.Request[v1.PauseTaskRequest]) (*connect.Response[v1.PauseTaskResponse], error) {
	id, err := g.control(ctx, req.Msg.GetId(), names.PauseTaskUpdate, command(ctx, req.Msg))
	return answered(&v1.PauseTaskResponse{Id: id}, err)
}

// ResumeTask resumes a suspended task or instance.
func (g *Gateway) ResumeTask(ctx context.Context, req *connect.Request[v1.ResumeTaskRequest]) (*connect.Response[v1.ResumeTaskResponse], error) {
	id, err := g.control(ctx, req.Msg.GetId(), names.ResumeTaskUpdate, &v1.TaskCommand{Task: req.Msg.GetTask(), By: actor(ctx)})
	return answered(&v1.ResumeTaskResponse{Id: id}, err)
}

// StopTask stops a task or instance that runs until it is stopped.
func (g *Gateway) StopTask(ctx context.Context, req *connect.Request[v1.StopTaskRequest]) (*connect.Response[v1.StopTaskResponse], error) {
	id, err := g.control(ctx, req.Msg.GetId(), names.StopTaskUpdate, command(ctx, req.Msg))
	return answered(&v1.StopTaskResponse{Id: id}, err)
}

// RestartTask restarts the machine of a task or instance that runs until it is stopped.
func (g *Gateway) RestartTask(ctx context.Context, req *connect.Request[v1.RestartTaskRequest]) (*connect.Response[v1.RestartTaskResponse], error) {
	id, err := g.control(ctx, req.Msg.GetId(), names.RestartTaskUpdate, command(ctx, req.Msg))
	return answered(&v1.RestartTaskResponse{Id: id}, err)
}

// KillTask kills a task or instance.
func (g *Gateway) KillTask(ctx context.Context, req *connect.Request[v1.KillTaskRequest]) (*connect.Response[v1.KillTaskResponse], error) {
	id, err := g.control(ctx, req.Msg.GetId(), names.KillTaskUpdate, command(ctx, req.Msg))
	return answered(&v1.KillTaskResponse{Id: id}, err)
}

// command returns the task command of a request, in the name of the caller.
func command(ctx context.Context, req interface {
	GetTask() string
	GetReason() string
}) *v1.TaskCommand {
	return &v1.TaskCommand{Task: req.GetTask(), Reason: req.GetReason(), By: actor(ctx)}
}

// control resolves the text that names a run and sends an update to the run, or to the child of the run that
// carries the instance.
func (g *Gateway) control(ctx context.Context, text, update string, arg any) (id string, err error) {
	id, err = g.index.Resolve(ctx, text)
	if err != nil {
		return "", err
	}
	err = g.update(ctx, id, update, arg)
	if about, ok := arg.(*v1.TaskCommand); ok && rpcerror.CodeOf(err) == connect.CodeNotFound {
		if child := g.childWith(ctx, id, about.GetTask()); child != "" {
			return id, g.update(ctx, child, update, arg)
		}
	}
	return id, err
}

// childWith returns the id of the child of a run that carries an instance, or "" if none does.
func (g *Gateway) childWith(ctx context.Context, id, instance string) string {
	task, index, ok := names.ParseInstanceName(instance)
	if !ok {
		return ""
	}
	answer, err := g.reader.QueryInstances(ctx, id, &v1.InstancesRequest{Task: task, From: int32(index), Limit: 1})
	if err != nil {
		g.log.Debug("a run does not say who carries an instance", "run", id, "instance", instance, "error", err)
	}
	return answer.GetChild()
}

func answered[M any](msg *M, err error) (*connect.Response[M], error) {
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(msg), nil
}

// CancelRun requests the cancellation of a run. It returns once Temporal has accepted the request, not when
// the run has ended. With force it returns when the run and everything below it have been terminated.
func (g *Gateway) CancelRun(ctx context.Context, req *connect.Request[v1.CancelRunRequest]) (*connect.Response[v1.CancelRunResponse], error) {
	id, err := g.index.Resolve(ctx, req.Msg.GetId())
	if err != nil {
		return nil, err
	}
	if req.Msg.GetForce() {
		res, err := g.cancelByForce(ctx, id, req.Msg.GetReason())
		if err != nil {
			return nil, err
		}
		return connect.NewResponse(res), nil
	}
	if err := g.signalCancel(ctx, id, &v1.RunCommand{Reason: req.Msg.GetReason(), By: actor(ctx)}); err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.CancelRunResponse{Id: id}), nil
}

// signalCancel signals an open run to end. It repeats the signal while the run is continuing as new.
func (g *Gateway) signalCancel(ctx context.Context, id string, command *v1.RunCommand) error {
	ctx, cancel := context.WithTimeout(ctx, updateTimeout)
	defer cancel()
	for {
		err := g.client.SignalWorkflow(ctx, id, "", names.CancelSignal, command)
		if err == nil {
			return nil
		}
		if !rpcerror.Is[*serviceerror.NotFound](err) {
			return fmt.Errorf("cancel run %s: %w", id, err)
		}
		// Temporal also returns NotFound for a closed workflow.
		if err = g.closed(ctx, id); rpcerror.CodeOf(err) != connect.CodeUnavailable {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(crowdedPause):
		}
	}
}
