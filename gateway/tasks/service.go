package tasks

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"switchyard/gateway/definitions"
	"switchyard/gateway/singletask"
	"switchyard/gateway/submission"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/definition/source"
)

// Runs starts runs. It is safe for concurrent use.
type Runs interface {
	// Prepare checks a request and returns the input of its run and the warnings about its definition.
	Prepare(ctx context.Context, req *v1.SubmitRunRequest) (*historyv1.RunInput, source.Problems, error)
	// Start starts a run and returns its id. existed reports that the request with the same idempotency key had already
	// started it. An empty key matches no other.
	Start(ctx context.Context, in *historyv1.RunInput, trigger, key string) (id string, existed bool, err error)
}

// Lists lists the tasks of all runs. It is safe for concurrent use.
type Lists interface {
	// List returns a page of tasks, those of the newest run first.
	List(ctx context.Context, req *v1.ListTasksRequest) (*v1.ListTasksResponse, error)
	// Queue returns the tasks that wait to start, with the reasons.
	Queue(ctx context.Context, req *v1.GetQueueRequest) (*v1.GetQueueResponse, error)
}

// Service implements TaskService. It is safe for concurrent use.
type Service struct {
	Runs  Runs
	Lists Lists
}

var _ switchyardv1connect.TaskServiceHandler = Service{}

// SubmitTask checks a task and starts a run of it.
func (s Service) SubmitTask(ctx context.Context, req *connect.Request[v1.SubmitTaskRequest]) (*connect.Response[v1.SubmitTaskResponse], error) {
	key, err := submission.Key(ctx, req.Msg.GetIdempotencyKey())
	if err != nil {
		return nil, err
	}
	submitted, err := s.submit(ctx, req.Msg, req.Msg.GetBatch(), key)
	if err != nil {
		return nil, err
	}
	res := connect.NewResponse(submitted)
	if !submitted.GetExisted() {
		submission.MarkCreated(res, submitted.GetId())
	}
	return res, nil
}

// ListTasks lists the tasks of all runs, the newest run first.
func (s Service) ListTasks(ctx context.Context, req *connect.Request[v1.ListTasksRequest]) (*connect.Response[v1.ListTasksResponse], error) {
	listed, err := s.Lists.List(ctx, req.Msg)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(listed), nil
}

// GetQueue returns the tasks that wait to start, with the reasons.
func (s Service) GetQueue(ctx context.Context, req *connect.Request[v1.GetQueueRequest]) (*connect.Response[v1.GetQueueResponse], error) {
	queue, err := s.Lists.Queue(ctx, req.Msg)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(queue), nil
}

// submit starts a run of one task. It uses the given batch and key, not those of the request.
func (s Service) submit(ctx context.Context, req *v1.SubmitTaskRequest, batch, key string) (*v1.SubmitTaskResponse, error) {
	name := singletask.Name(req)
	def := singletask.Definition(req)
	in, warnings, err := s.Runs.Prepare(ctx, &v1.SubmitRunRequest{
		Source: &v1.SubmitRunRequest_Definition{Definition: def}, Options: req.GetOptions(), Batch: batch,
	})
	if problems, ok := errors.AsType[source.Problems](err); ok {
		return nil, definitions.Error(problemsOfTask(problems, name))
	}
	if err != nil {
		return nil, err
	}
	id, existed, err := s.Runs.Start(ctx, in, v1.TriggerSubmit, key)
	if err != nil {
		return nil, fmt.Errorf("start a run of task %s: %w", name, err)
	}
	return &v1.SubmitTaskResponse{Id: id, Task: name, Existed: existed, Warnings: problemsOfTask(warnings, name)}, nil
}

// problemsOfTask returns the problems of a one-task definition with their paths relative to the task request.
func problemsOfTask(problems source.Problems, name string) source.Problems {
	place := source.Root.Field("tasks").Key(name).String()
	var moved source.Problems
	for _, problem := range problems {
		problem = proto.CloneOf(problem)
		switch path, inTask := strings.CutPrefix(problem.GetPath(), place+"."); {
		case inTask:
			problem.Path = path
		case problem.GetPath() == place: // only the name of the task is reported at this path
			problem.Path = "name"
		}
		moved = append(moved, problem)
	}
	// An invalid task name is usually an invalid workflow name too, so one of the two problems suffices.
	if names := slices.DeleteFunc(slices.Clone(moved), func(p *v1.Problem) bool { return p.GetPath() != "name" }); len(names) > 1 {
		moved = slices.DeleteFunc(moved, func(p *v1.Problem) bool { return p == names[0] })
	}
	return moved
}
