package taskrunner

import (
	"cmp"
	"context"

	"go.temporal.io/sdk/activity"
	"google.golang.org/protobuf/types/known/durationpb"

	"switchyard/activities/heartbeat"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
)

// Execute runs one attempt of a task and returns how it ended, once nothing of it is left. Cancelling the activity stops
// the attempt. If an earlier attempt has completed the task without reporting it, Execute returns that result. A batch of
// instances runs as one attempt (see runBatch). If the attempt is detached, Execute returns early, and the call that
// reattaches the attempt returns the answer.
func (n *Node) Execute(ctx context.Context, req *historyv1.ExecuteRequest) (*historyv1.ExecuteResponse, error) {
	followReset(req, activity.GetInfo(ctx).WorkflowExecution.RunID)
	return activityEnd(n.executeFrom(ctx, deliveryOf(ctx), req))
}

// followReset makes an attempt work for the execution of its activity. After a reset, an activity that was scheduled but
// not started belongs to the new execution, while its request still names the terminated one.
func followReset(req *historyv1.ExecuteRequest, execution string) {
	if req.GetExecution() != "" && req.GetExecution() != execution {
		req.Chain, req.Execution = execution, execution // the first execution after a reset names the chain
	}
}

func (n *Node) executeFrom(ctx context.Context, d delivery, req *historyv1.ExecuteRequest) (*historyv1.ExecuteResponse, error) {
	if req.GetReattach() {
		key := keyOf(req, membersOf(req))
		switch err := n.awaitRecovered(ctx, d, req, key); err {
		case nil:
		case errLetGo:
			return nil, err
		default:
			return &historyv1.ExecuteResponse{State: v1.TaskCancelled, Reason: v1.ReasonCancelled, Node: n.Name}, nil
		}
		if a := n.attempts.find(key); a != nil {
			left := a.attendance.reattach(d.activityRef)
			if req.GetStop() {
				a.stop(heartbeat.ErrCancelled)
			}
			return a.awaitEnd(ctx, left)
		}
		if left := n.attempts.findLeft(key); left != nil { // the next worker answers
			left.attendance.reattach(d.activityRef)
			return nil, errLetGo
		}
		return n.lostAnswer(ctx, d.heartbeat, req)
	}
	own, a := n.accept(context.WithoutCancel(ctx), d, req)
	n.Metrics.Claimed(n.Name)
	if ctx.Err() != nil {
		a.stop(context.Cause(ctx))
	}
	go a.runToEnd(own)
	return a.awaitEnd(ctx, a.attendance.first)
}

// delivery holds what the server sent along with a request.
type delivery struct {
	activityRef
	queue string // the task queue that delivered the attempt
	// stopping is closed when the worker stops.
	stopping <-chan struct{}
}

func deliveryOf(ctx context.Context) delivery {
	info := activity.GetInfo(ctx)
	return delivery{
		activityRef: activityRef{
			Activity: heartbeat.Activity{
				Namespace: info.Namespace, WorkflowID: info.WorkflowExecution.ID, RunID: info.WorkflowExecution.RunID, ID: info.ActivityID,
			},
			token: info.TaskToken, heartbeat: cmp.Or(info.HeartbeatTimeout, defaultHeartbeatTimeout),
		},
		queue: info.TaskQueue, stopping: activity.GetWorkerStopChannel(ctx),
	}
}

// awaitEnd waits for the end of an attempt on behalf of the activity that reattach has registered. It returns early when
// left is closed. When ctx ends, it stops the attempt.
func (a *attempt) awaitEnd(ctx context.Context, left <-chan struct{}) (*historyv1.ExecuteResponse, error) {
	unhear := context.AfterFunc(ctx, func() { a.stop(context.Cause(ctx)) })
	defer unhear()
	select {
	case <-a.attendance.done:
	case <-left:
		if !a.attendance.isOver() {
			return &historyv1.ExecuteResponse{
				State: v1.AttemptDetached, Node: a.node.Name, AssignedAt: a.takenUpAt, StartedAt: a.progress.Load().GetStartedAt(),
				Lease: durationpb.New(a.attendance.detachedLease()),
			}, nil
		}
	}
	a.node.attempts.leave(a)
	return a.attendance.res, a.attendance.err
}
