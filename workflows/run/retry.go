package run

import (
	"fmt"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/names"
)

// handle registers the handlers of queries and updates. It runs first, so that none is rejected while the run begins.
func (r *run) handle() error {
	err := workflow.SetQueryHandler(r.root, names.StatusQuery, func(req *v1.StatusRequest) (*v1.StatusResponse, error) {
		if r.status == nil {
			return r.notBegun()
		}
		res, err := r.status.Answer(req)
		if err == nil {
			res.Chain = r.selfChain
		}
		if err == nil && req.GetSince() == 0 {
			res.Partitions = r.allPartitions()
		}
		return res, err
	})
	if err != nil {
		return err
	}
	err = workflow.SetQueryHandler(r.root, names.EventsQuery, func(req *v1.EventsRequest) (*v1.EventsResponse, error) {
		if r.log == nil {
			return nil, errNotBegun
		}
		return r.log.Answer(req)
	})
	if err != nil {
		return err
	}
	err = workflow.SetQueryHandler(r.root, names.InstancesQuery, func(req *v1.InstancesRequest) (*v1.InstancesResponse, error) {
		if r.status == nil {
			return nil, errNotBegun
		}
		if child, open := r.childOf(req); child != "" {
			return &v1.InstancesResponse{Next: req.GetFrom(), Child: child, Open: open, Items: r.status.ItemsOf(req.GetTask())}, nil
		}
		return r.status.Instances(req)
	})
	if err != nil {
		return err
	}
	err = workflow.SetUpdateHandlerWithOptions(r.root, names.RetryUpdate, r.retry, workflow.UpdateHandlerOptions{
		Validator:   r.mayRetry,
		Description: "put a dead letter back",
	})
	if err != nil {
		return err
	}
	return r.handleCommands()
}

// notBegun returns the status of a run that still waits for its input.
func (r *run) notBegun() (*v1.StatusResponse, error) {
	if r.outage.problem == "" {
		return nil, errNotBegun
	}
	return &v1.StatusResponse{Chain: r.selfChain, Run: &v1.Run{
		Id: r.self, Name: r.attributes.wanted.Workflow, State: v1.RunPending, Generation: r.in.GetGeneration(), Problem: r.outage.problem,
	}}, nil
}

// retry requeues a dead letter and resets its attempts to 0.
func (r *run) retry(ctx workflow.Context, req *v1.RetryTaskRequest) error {
	if err := workflow.Await(ctx, func() bool { return r.core != nil || r.refusal != nil }); err != nil {
		return err
	}
	if r.refusal != nil {
		return r.refusal
	}
	if err := r.mayRetry(req); err != nil {
		return err
	}
	if r.cancelRequested() { // a validator may not check this
		return refuse(names.TaskStateError, dag.ErrCancelled)
	}
	if m, number := r.partitionedInstance(req.GetTask()); m != nil {
		r.requeueInstance(m, number)
		return nil
	}
	i, _ := r.core.Index(req.GetTask()) // mayRetry has checked the name
	r.status.Extras(i).SteeredBy = req.GetBy()
	r.events = append(r.events, dag.Retry{Task: i})
	return nil
}

// mayRetry returns why a task cannot be requeued, or nil if it can. It also returns nil before the run has begun; retry then
// checks again.
func (r *run) mayRetry(req *v1.RetryTaskRequest) error {
	if r.core == nil {
		return nil
	}
	if m, number := r.partitionedInstance(req.GetTask()); m != nil {
		return r.mayRequeueInstance(m, number)
	}
	i, ok := r.core.Index(req.GetTask())
	if !ok {
		return refuse(names.UnknownTaskError, fmt.Errorf("task %q: %w", req.GetTask(), dag.ErrUnknownTask))
	}
	if r.core.Over() {
		return refuse(names.RunEndedError, errJustEnded)
	}
	if r.cancelled {
		return refuse(names.TaskStateError, dag.ErrCancelled)
	}
	if err := r.core.MayRetry(i); err != nil {
		return refuse(names.TaskStateError, err)
	}
	return nil
}

func refuse(kind string, err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), kind, nil)
}

// awaitHandlers waits until every update has its answer.
func (r *run) awaitHandlers() {
	// The only error is a cancelled context, and ctx is never cancelled.
	_ = workflow.Await(r.ctx, func() bool { return workflow.AllHandlersFinished(r.ctx) })
}

// startsWith returns what this generation reruns. It is empty for an execution that continues from one of the same generation.
func (r *run) startsWith() dag.Rerun {
	if r.in.GetState() != nil {
		return dag.Rerun{}
	}
	again := r.in.GetRerun()
	return dag.Rerun{Tasks: r.in.GetRetry(), Failed: again.GetFailed(), Skipped: again.GetSkipped(), From: again.GetFrom()}
}

// reopen restores the status with which the previous generation ended.
func (r *run) reopen() error {
	var runState v1.RunState
	req := &v1.ReopenRequest{RunId: r.id, Chain: r.in.GetChain(), Execution: r.execution(), Generation: r.in.GetGeneration(), Terminated: r.in.GetTerminated()}
	if err := r.mustNow("load the state of the run that has ended", names.ReopenActivity, &runState, req); err != nil {
		return fmt.Errorf("load the state of generation %d of the run: %w", req.GetGeneration()-1, err)
	}
	runState.EventSlices, runState.NextEvent = 0, 0 // those belong to the previous generation
	return r.restore(&runState)
}
