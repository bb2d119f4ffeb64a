package runretry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"connectrpc.com/connect"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"

	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runupdate"
	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// updater sends updates to the workflows of runs. It is safe for concurrent use.
type updater interface {
	// SendOnce sends an update and returns the reply of the run.
	SendOnce(ctx context.Context, id, name string, arg any) error
	// FindChild returns the id of the child of a run that carries an instance, or "" if none does.
	FindChild(ctx context.Context, id, instance string) string
}

// letterRetries retries dead letters.
type letterRetries struct {
	index    *runindex.Index
	reader   *runview.Reader
	store    storeWait
	letters  letterReader
	updater  updater
	reopener Reopener
}

// RetryDeadLetter retries dead letters of a run. An open run puts them back itself; a closed run is reopened under its id as
// the next generation. Of concurrent calls for the same closed run one reopens it, and the others find the task already put
// back.
func (r letterRetries) RetryDeadLetter(ctx context.Context, req *connect.Request[v1.RetryDeadLetterRequest]) (*connect.Response[v1.RetryDeadLetterResponse], error) {
	id, err := r.index.Resolve(ctx, req.Msg.GetRun())
	if err != nil {
		return nil, err
	}
	var res *v1.RetryDeadLetterResponse
	err = r.store.await(ctx, "put back the dead letters of run "+id, func(ctx context.Context) error {
		res, err = r.retryDeadLetters(ctx, id, req.Msg.GetTask())
		return err
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(res), nil
}

// retryDeadLetters puts back the dead letter of a task, or all those of the run if task is "".
func (r letterRetries) retryDeadLetters(ctx context.Context, id, task string) (*v1.RetryDeadLetterResponse, error) {
	var tasks []string
	var generation int32
	err := retryWhileChanging(ctx, r.reader, id, func(desc *runview.Description, v *runview.View) (string, error) {
		chosen, err := r.letters.selectRefs(ctx, v, task)
		if err != nil {
			return "", err
		}
		tasks, generation = namesOf(chosen), v.Run.GetGeneration()
		status := desc.GetWorkflowExecutionInfo().GetStatus()
		if status == enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED {
			return "", rpcerror.WrongState("run %s was cancelled and cannot continue", id)
		}
		if runview.IsOpen(status) {
			tasks, err = r.requeue(ctx, id, tasks, len(tasks) == 1 && task != "")
		} else {
			generation++
			err = r.reopener.Reopen(ctx, desc, &historyv1.RunInput{Generation: generation, Retry: slices.Sorted(slices.Values(tasks))}, nil)
		}
		return fmt.Sprintf("put back %s of run %s", strings.Join(tasks, ", "), id), err
	})
	if err != nil {
		return nil, err
	}
	return &v1.RetryDeadLetterResponse{Run: id, Tasks: tasks, Generation: generation}, nil
}

// retryTask asks the workflow of an open run to put a task or instance back. If an open child carries the instance of a large
// fan-out, the request goes to the child.
func (r letterRetries) retryTask(ctx context.Context, id, task string) error {
	req := &historyv1.RetryTaskRequest{Task: task, By: auth.From(ctx).Name}
	err := r.updater.SendOnce(ctx, id, names.RetryUpdate, req)
	if runupdate.IsRefusal(err, names.UnknownTaskError) {
		if child := r.updater.FindChild(ctx, id, task); child != "" {
			return r.updater.SendOnce(ctx, child, names.RetryUpdate, req)
		}
	}
	return err
}

// requeue asks the workflow of an open run to put tasks back, and returns the tasks that it has put back. If named is false,
// tasks that the workflow refuses are skipped as long as it accepts others.
func (r letterRetries) requeue(ctx context.Context, id string, tasks []string, named bool) ([]string, error) {
	var done []string
	var refused error
	for _, task := range tasks {
		err := r.retryTask(ctx, id, task)
		said, ok := errors.AsType[*temporal.ApplicationError](err)
		switch {
		case err == nil:
			done = append(done, task)
		case !ok:
			return done, err
		case said.Type() == names.RunEndedError:
			return done, connect.NewError(connect.CodeNotFound, errors.New(said.Message()))
		case said.Type() == names.UnknownTaskError:
			return done, rpcerror.NotFound("%s", said.Message())
		default:
			if refused = rpcerror.WrongState("%s", said.Message()); named {
				return done, refused
			}
		}
	}
	if len(done) == 0 {
		return nil, refused
	}
	return done, nil
}
