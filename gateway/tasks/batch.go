package tasks

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	"switchyard/gateway/auth"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/submission"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/names"
)

// tasksAtOnce is the number of tasks of a batch that are started concurrently.
const tasksAtOnce = 16

// madeBatch is the prefix of the names of batches that the gateway generates.
const madeBatch = "batch"

// SubmitTasks starts a run for each of several tasks and returns the outcome of each. Tasks that could not be started
// within the time limit of the call have an error.
func (s Service) SubmitTasks(ctx context.Context, req *connect.Request[v1.SubmitTasksRequest]) (*connect.Response[v1.SubmitTasksResponse], error) {
	key, err := submission.Key(ctx, req.Msg.GetIdempotencyKey())
	if err != nil {
		return nil, err
	}
	res := &v1.SubmitTasksResponse{BatchId: batchID(req.Msg.GetBatchId(), submission.ScopedKey(auth.From(ctx).Name, key)), Items: make([]*v1.SubmittedTask, len(req.Msg.GetTasks()))}
	var group errgroup.Group
	group.SetLimit(tasksAtOnce)
	for i, task := range req.Msg.GetTasks() {
		group.Go(func() error {
			res.Items[i] = s.submitItem(ctx, i, task, res.GetBatchId(), cmp.Or(task.GetIdempotencyKey(), itemKey(key, i)))
			return nil
		})
	}
	_ = group.Wait() // each item carries its own error
	for _, item := range res.GetItems() {
		if item.GetError() != nil {
			res.Refused++
		} else {
			res.Accepted++
		}
	}
	return connect.NewResponse(res), nil
}

// batchID returns the name that links the runs of a batch. Requests with the same key get the same name.
func batchID(given, key string) string {
	switch {
	case given != "":
		return given
	case key != "":
		return names.KeyedRunID(madeBatch, key)
	}
	return names.NewRunID(madeBatch)
}

// itemKey returns the idempotency key of a task of a batch, or "" if the batch has no key.
func itemKey(key string, index int) string {
	if key == "" {
		return ""
	}
	return fmt.Sprintf("%s[%d]", key, index)
}

// submitItem starts a run of one task of a batch.
func (s Service) submitItem(ctx context.Context, index int, task *v1.SubmitTaskRequest, batch, key string) *v1.SubmittedTask {
	item := &v1.SubmittedTask{Index: int32(index)}
	if own := task.GetBatch(); own != "" && own != batch {
		item.Error = submissionError(rpcerror.Invalid("batch is %q, but this request belongs to batch %q; leave batch out, or send batchId", own, batch))
		return item
	}
	if ctx.Err() != nil {
		item.Error = submissionError(fmt.Errorf("the request timed out before the task was started; send the remaining tasks again: %w", ctx.Err()))
		return item
	}
	submitted, err := s.submit(ctx, task, batch, key)
	if err != nil {
		item.Error = submissionError(err)
		return item
	}
	item.Id, item.Task, item.Existed, item.Warnings = submitted.GetId(), submitted.GetTask(), submitted.GetExisted(), submitted.GetWarnings()
	return item
}

// submissionError converts an error to a part of the response.
func submissionError(err error) *v1.SubmissionError {
	failed := &v1.SubmissionError{Code: rpcerror.CodeOf(err).String(), Message: err.Error()}
	if coded, ok := errors.AsType[*connect.Error](err); ok {
		failed.Message = coded.Message()
	}
	if problems, ok := errors.AsType[source.Problems](err); ok {
		failed.Problems = problems
	}
	return failed
}
