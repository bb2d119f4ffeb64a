package runretry

import (
	"context"
	"errors"
	"slices"

	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// runRetries starts the next generations of runs.
type runRetries struct {
	index    *runindex.Index
	reader   *runview.Reader
	store    storeWait
	reopener Reopener
}

// RetryRun starts the next generation of a run that has ended. Of concurrent calls for the same run one starts it, and the
// others find it open.
func (r runRetries) RetryRun(ctx context.Context, req *connect.Request[v1.RetryRunRequest]) (*connect.Response[v1.RetryRunResponse], error) {
	id, err := r.index.Resolve(ctx, req.Msg.GetId())
	if err != nil {
		return nil, err
	}
	var res *v1.RetryRunResponse
	err = r.store.await(ctx, "start run "+id+" again", func(ctx context.Context) error {
		res, err = r.retryRun(ctx, id, req.Msg)
		return err
	})
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(res), nil
}

func (r runRetries) retryRun(ctx context.Context, id string, req *v1.RetryRunRequest) (*v1.RetryRunResponse, error) {
	limits := req.GetLimits()
	var generation int32
	err := retryWhileChanging(ctx, r.reader, id, func(desc *runview.Description, v *runview.View) (string, error) {
		if runview.IsOpen(desc.GetWorkflowExecutionInfo().GetStatus()) {
			return "", rpcerror.WrongState("run %s is still open; only ended runs can be retried (for single tasks use `dlq retry`)", id)
		}
		again, err := rerunOf(v, req)
		if err == nil {
			err = checkAgentLimits(v, limits)
		}
		if err != nil {
			return "", err
		}
		generation = v.Run.GetGeneration() + 1
		return "start run " + id + " again", r.reopener.Reopen(ctx, desc, &historyv1.RunInput{Generation: generation, Rerun: again}, limits)
	})
	if err != nil {
		return nil, err
	}
	return &v1.RetryRunResponse{Id: id, Generation: generation}, nil
}

// rerunOf returns what the next generation of an ended run repeats: the named tasks with everything downstream, or, if
// none is named, everything that did not complete. A completed run without named tasks can only continue if failed agents
// of it get new limits. `finally` runs again in any case, and with finally_only nothing else does.
func rerunOf(v *runview.View, req *v1.RetryRunRequest) (*historyv1.Rerun, error) {
	id, from, limits := v.Run.GetId(), req.GetFrom(), req.GetLimits()
	if req.GetFinallyOnly() {
		hasFinally := false
		for _, t := range v.Tasks {
			hasFinally = hasFinally || t.Task.GetFinally()
		}
		switch {
		case len(from)+len(limits) > 0:
			return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("finally_only excludes from and limits: no other task runs again"))
		case !hasFinally:
			return nil, rpcerror.WrongState("the workflow of run %s has no finally", id)
		case !hasBegun(v):
			return nil, rpcerror.WrongState("run %s ended before it began, so there is nothing to clean up; `switchyard runs retry %s` starts it", id, id)
		}
		return &historyv1.Rerun{FinallyOnly: true}, nil
	}
	if len(from) > 0 {
		from = slices.Compact(slices.Sorted(slices.Values(from)))
		for _, task := range from {
			if v.Tasks[task] == nil {
				return nil, v.NoTask(task)
			}
		}
		return &historyv1.Rerun{From: from}, nil
	}
	if len(v.Tasks) == 0 {
		return nil, rpcerror.WrongState("run %s ended before it read its definition, so there is nothing to retry; submit its workflow again", id)
	}
	if v.Run.GetState() == v1.RunCompleted && !failedWithNewLimits(v, limits) {
		hint := "name the tasks to repeat"
		if hasDeadLetters(v) {
			hint += ", or put its dead letters back with `switchyard dlq retry`"
		}
		return nil, rpcerror.WrongState("run %s has completed, so there is nothing to retry; %s", id, hint)
	}
	for _, t := range v.Tasks {
		if !v1.IsTaskSuccess(t.Task.GetState()) {
			return &historyv1.Rerun{Failed: true}, nil
		}
	}
	return nil, rpcerror.WrongState("every task of run %s has completed; name the tasks to repeat", id)
}

// hasBegun reports whether a task of an ended run could start in any generation.
func hasBegun(v *runview.View) bool {
	for _, t := range v.Tasks {
		if runview.HasBegun(t.Task) {
			return true
		}
	}
	return v.Run.GetState() == v1.RunCompleted
}

// hasDeadLetters reports whether tasks or instances of a run are dead letters.
func hasDeadLetters(v *runview.View) bool {
	for _, t := range v.Tasks {
		if t.Task.GetState() == v1.TaskDeadLetter || t.Task.GetCounts()[v1.TaskDeadLetter] > 0 {
			return true
		}
	}
	return false
}

// failedWithNewLimits reports whether one of the tasks with new limits did not complete.
func failedWithNewLimits(v *runview.View, limits map[string]*v1.AgentLimits) bool {
	for name := range limits {
		if t := v.Tasks[name]; t != nil && !v1.IsTaskSuccess(t.Task.GetState()) {
			return true
		}
	}
	return false
}
