package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/executor/subagent/tool"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// defaultWait and maxWait are the default and the maximum wait for the end of a run, in seconds.
	defaultWait, maxWait = 3600, 24 * 3600
	// retryPause is the delay between attempts to reach an unavailable gateway.
	retryPause = time.Second
)

// seconds returns the wait that the model asked for. Its error is meant for the model.
func seconds(given int) (time.Duration, error) {
	if given < 0 || given > maxWait {
		return 0, fmt.Errorf("timeoutSeconds is %d; it must be 1 to %d", given, maxWait)
	}
	return time.Duration(cmp.Or(given, defaultWait)) * time.Second, nil
}

// submit starts a run with one task, unless an earlier attempt of the call has started it.
func (f *Fleet) submit(ctx context.Context, call tool.Call, name, taskName string, task *v1.TaskDefinition, input *structpb.Struct) (run string, err error) {
	req := &v1.SubmitRunRequest{
		Source: &v1.SubmitRunRequest_Definition{Definition: &v1.Definition{
			Name: name, Tasks: map[string]*v1.TaskDefinition{taskName: task},
			Description: cut(fmt.Sprintf("Started by the agent %s of the run %s.", f.o.Task, f.o.Run), 1000),
		}},
		Input: input, IdempotencyKey: f.key(call), Batch: f.o.Batch,
	}
	until := time.Now().Add(30 * time.Second)
	for {
		answer, err := f.runs.SubmitRun(ctx, connect.NewRequest(req))
		if err == nil {
			return answer.Msg.GetId(), nil
		}
		if !isAway(err) || time.Now().After(until) || pause(ctx) != nil {
			return "", err
		}
	}
}

// await returns the run when it has ended, or its current state after the wait.
func (f *Fleet) await(ctx context.Context, run string, wait time.Duration) (*v1.Run, error) {
	waiting, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	for waiting.Err() == nil {
		err := f.watch(waiting, run)
		if err == nil {
			break
		}
		if waiting.Err() == nil && !isAway(err) {
			return nil, err
		}
		_ = pause(waiting)
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	got, err := f.runs.GetRun(ctx, connect.NewRequest(&v1.GetRunRequest{Id: run, Brief: true, PageSize: 1}))
	if err != nil {
		return nil, err
	}
	return got.Msg.GetRun(), nil
}

// watch waits until a run has ended. An error means that the stream ended earlier.
func (f *Fleet) watch(ctx context.Context, run string) error {
	stream, err := f.runs.WatchRun(ctx, connect.NewRequest(&v1.WatchRunRequest{Id: run}))
	if err != nil {
		return err
	}
	defer stream.Close()
	for stream.Receive() {
		if v1.IsRunTerminal(stream.Msg().GetRun().GetState()) {
			return nil
		}
	}
	if err := stream.Err(); err != nil {
		return err
	}
	return connect.NewError(connect.CodeUnavailable, errors.New("the gateway has ended the stream of the run"))
}

// isAway reports whether the gateway is temporarily unavailable.
func isAway(err error) bool {
	switch connect.CodeOf(err) {
	case connect.CodeUnavailable, connect.CodeResourceExhausted, connect.CodeDeadlineExceeded:
		return true
	}
	return false
}

// pause waits before the next attempt.
func pause(ctx context.Context) error {
	select {
	case <-time.After(retryPause):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
