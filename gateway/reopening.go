package gateway

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// reopenPause is the pause before another attempt to reopen a run that has changed in the meantime.
const reopenPause = 200 * time.Millisecond

// RetryDeadLetter retries dead letters of a run. An open run puts them back itself; a closed run is reopened under its id as
// the next generation. Of concurrent calls for the same closed run one reopens it, and the others find the task already put
// back.
func (g *Gateway) RetryDeadLetter(ctx context.Context, req *connect.Request[v1.RetryDeadLetterRequest]) (*connect.Response[v1.RetryDeadLetterResponse], error) {
	id, err := g.index.Resolve(ctx, req.Msg.GetRun())
	if err != nil {
		return nil, err
	}
	var res *v1.RetryDeadLetterResponse
	err = g.awaitStore(ctx, "put back the dead letters of run "+id, func(ctx context.Context) error {
		res, err = g.retryDeadLetters(ctx, id, req.Msg.GetTask())
		return err
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(res), nil
}

// retryDeadLetters puts back the dead letter of a task, or all those of the run if task is "".
func (g *Gateway) retryDeadLetters(ctx context.Context, id, task string) (*v1.RetryDeadLetterResponse, error) {
	var tasks []string
	var generation int32
	err := g.retryWhileChanging(ctx, id, func(desc *runview.Description, v *runview.View) (string, error) {
		chosen, err := g.choose(ctx, v, task)
		if err != nil {
			return "", err
		}
		tasks, generation = namesOf(chosen), v.Run.GetGeneration()
		status := desc.GetWorkflowExecutionInfo().GetStatus()
		if status == enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED {
			return "", rpcerror.WrongState("run %s was cancelled, and a cancelled run does not continue", id)
		}
		if runview.IsOpen(status) {
			tasks, err = g.requeue(ctx, id, tasks, len(tasks) == 1 && task != "")
		} else {
			generation++
			err = g.reopen(ctx, desc, &v1.RunInput{Generation: generation, Retry: slices.Sorted(slices.Values(tasks))}, nil)
		}
		return fmt.Sprintf("put back %s of run %s", strings.Join(tasks, ", "), id), err
	})
	if err != nil {
		return nil, err
	}
	return &v1.RetryDeadLetterResponse{Run: id, Tasks: tasks, Generation: generation}, nil
}

// retryWhileChanging calls try with a settled run, and again with its newest state if the run ends or is reopened meanwhile.
// try returns what it attempted, for the error, or "" if its error is final.
func (g *Gateway) retryWhileChanging(ctx context.Context, id string,
	try func(desc *runview.Description, v *runview.View) (what string, err error)) error {
	for {
		desc, v, err := g.reader.ReadSettled(ctx, id)
		if err != nil {
			return err
		}
		what, err := try(desc, v)
		if err == nil || what == "" {
			return err
		}
		if code := rpcerror.CodeOf(err); code != connect.CodeNotFound && code != connect.CodeAlreadyExists {
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		case <-time.After(reopenPause):
		}
	}
}

// retryTask asks the workflow of an open run to put a task or instance back. If an open child carries the instance of a large
// fan-out, the request goes to the child.
func (g *Gateway) retryTask(ctx context.Context, id, task string) error {
	req := &v1.RetryTaskRequest{Task: task, By: actor(ctx)}
	err := g.updateOnce(ctx, id, names.RetryUpdate, req)
	if isRefusal(err, names.UnknownTaskError) {
		if child := g.childWith(ctx, id, task); child != "" {
			return g.updateOnce(ctx, child, names.RetryUpdate, req)
		}
	}
	return err
}

// requeue asks the workflow of an open run to put tasks back, and returns the tasks that it has put back. If named is false,
// tasks that the workflow refuses are skipped as long as it accepts others.
func (g *Gateway) requeue(ctx context.Context, id string, tasks []string, named bool) ([]string, error) {
	var done []string
	var refused error
	for _, task := range tasks {
		err := g.retryTask(ctx, id, task)
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

// reopen starts a new generation of a closed run with the plan in again and, if limits is not empty, new limits for its
// agents. The request id is that of the closed execution, so a repeated request returns the execution that was started, even
// if that one has ended by now. The error is AlreadyExists if that execution was started with another plan.
func (g *Gateway) reopen(ctx context.Context, desc *runview.Description, again *v1.RunInput, limits map[string]*v1.AgentLimits) error {
	info := desc.GetWorkflowExecutionInfo()
	first, err := g.reader.Input(ctx, info.GetExecution())
	if err != nil {
		return err
	}
	status, err := g.keep(ctx, desc, first.GetChain(), again.GetGeneration()-1)
	if err != nil {
		return err
	}
	if err := g.endParts(ctx, status); err != nil {
		return err
	}
	closed, err := g.reader.FirstEvent(ctx, info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId(), enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	if err != nil {
		return err
	}
	next := proto.CloneOf(first) // with its chain, which leads to what earlier generations have left
	next.Generation, next.Retry, next.Again, next.Carry = again.GetGeneration(), again.GetRetry(), again.GetAgain(), nil
	next.By, next.Terminated = actor(ctx), ""
	next.Definition = withAgentLimits(next.GetDefinition(), limits)
	definition := next.GetDefinition()
	if runview.WasClosedFromOutside(info.GetStatus()) {
		next.Terminated = info.GetExecution().GetRunId()
	}
	if next, err = packed(next); err != nil {
		return err
	}
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(next)
	if err != nil {
		return fmt.Errorf("encode the input of a run: %w", err)
	}
	memo := &commonpb.Memo{Fields: maps.Clone(info.GetMemo().GetFields())}
	delete(memo.Fields, names.ProblemMemo) // it belongs to the previous generation
	attributes, err := visibility.Decode(info.GetSearchAttributes()).Reopened().Encode()
	if err != nil {
		return err
	}
	started, err := g.client.WorkflowService().StartWorkflowExecution(ctx, &workflowservice.StartWorkflowExecutionRequest{
		Namespace:                g.config.Namespace,
		WorkflowId:               info.GetExecution().GetWorkflowId(),
		WorkflowType:             &commonpb.WorkflowType{Name: names.RunWorkflow},
		TaskQueue:                &taskqueuepb.TaskQueue{Name: names.ControlQueue},
		Input:                    payloads,
		WorkflowTaskTimeout:      durationpb.New(runTaskTimeout),
		RequestId:                "reopen-" + info.GetExecution().GetRunId(),
		WorkflowIdReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIdConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		Memo:                     memo,
		SearchAttributes:         attributes,
		UserMetadata:             closed.GetUserMetadata(),
	})
	if err != nil {
		return err
	}
	got, err := g.reader.Input(ctx, &commonpb.WorkflowExecution{WorkflowId: info.GetExecution().GetWorkflowId(), RunId: started.GetRunId()})
	if err != nil {
		return err
	}
	if !slices.Equal(got.GetRetry(), again.GetRetry()) || !proto.Equal(got.GetAgain(), again.GetAgain()) || !proto.Equal(got.GetDefinition(), definition) {
		return connect.NewError(connect.CodeAlreadyExists, fmt.Errorf("run %s has just been started again otherwise", info.GetExecution().GetWorkflowId()))
	}
	return nil
}

// keep returns the status of a generation. If the generation was closed from outside and could not store its status and last
// events, keep stores them.
func (g *Gateway) keep(ctx context.Context, desc *runview.Description, chain string, generation int32) (*v1.StatusResponse, error) {
	id := desc.GetWorkflowExecutionInfo().GetExecution().GetWorkflowId()
	home, stored := names.Home(id, chain), &v1.StatusResponse{}
	err := g.store.GetMessage(ctx, storekey.Status(home, generation), stored)
	if err == nil || !errors.Is(err, store.ErrNotFound) {
		return stored, err
	}
	if events, part, err := g.reader.UnstoredEvents(ctx, id, 0); err == nil {
		if err := g.putOnce(ctx, storekey.Events(home, generation, part), &v1.EventPart{Events: events}); err != nil {
			return nil, err
		}
	}
	status, err := g.reader.FinalStatus(ctx, desc)
	if err != nil {
		return nil, err
	}
	return status, g.putOnce(ctx, storekey.Status(home, generation), status)
}

// putOnce stores a message unless the key has one. For the keys of fan-out parts the store has no atomic put-if-absent;
// concurrent calls for them store the same message.
func (g *Gateway) putOnce(ctx context.Context, key string, m proto.Message) error {
	if storekey.Check(key) == nil {
		_, err := g.store.PutMessageIfAbsent(ctx, key, m)
		return err
	}
	if _, err := g.store.Get(ctx, key); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return g.store.PutMessage(ctx, key, m)
}

// endParts cancels the open FanOut children of a closed run and waits until they have ended. A run that was closed from
// outside leaves them behind, and they would continue beside its next generation. For children that were closed along with
// the run it keeps their progress.
func (g *Gateway) endParts(ctx context.Context, status *v1.StatusResponse) error {
	ctx, cancel := context.WithTimeout(ctx, endPartsTimeout)
	defer cancel()
	var open []*v1.PartReport
	for _, p := range status.GetParts() {
		if p.GetOver() {
			continue
		}
		id := runview.PartID(status.GetRun().GetId(), p)
		err := g.client.SignalWorkflow(ctx, id, "", names.OrderSignal, &v1.PartOrder{Cancel: true})
		if _, closed := errors.AsType[*serviceerror.NotFound](err); err != nil && !closed {
			return fmt.Errorf("end instances of task %s: %w", p.GetTask(), err)
		}
		open = append(open, p)
	}
	for _, p := range open {
		id := runview.PartID(status.GetRun().GetId(), p)
		_ = g.client.GetWorkflow(ctx, id, "").Get(ctx, nil) // keepPart reads how the child ended
		if ctx.Err() != nil {
			return connect.NewError(connect.CodeUnavailable, fmt.Errorf("instances of run %s are still being stopped; try again", status.GetRun().GetId()))
		}
		if err := g.keepPart(ctx, id, p.GetGeneration()); err != nil {
			return err
		}
	}
	return nil
}

// keepPart stores the status of a FanOut child that was closed from outside. The next generation reads from it what has
// completed.
func (g *Gateway) keepPart(ctx context.Context, id string, generation int32) error {
	desc, err := g.client.DescribeWorkflowExecution(ctx, id, "")
	switch _, unknown := errors.AsType[*serviceerror.NotFound](err); {
	case unknown:
		return nil // the child was never started
	case err != nil:
		return fmt.Errorf("look up %s: %w", id, err)
	case !runview.WasClosedFromOutside(desc.GetWorkflowExecutionInfo().GetStatus()):
		return nil // the child has stored its status itself
	}
	if _, err := g.keep(ctx, desc, "", generation); err != nil {
		return fmt.Errorf("keep what has completed of %s: %w", id, err)
	}
	return nil
}

// endPartsTimeout exceeds the time that a task may take to end if it ignores SIGTERM.
const endPartsTimeout = 15 * time.Second
