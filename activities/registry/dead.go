package registry

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	"switchyard/activities/heartbeat"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// shortestTimeout is the heartbeat time-out of an attempt on a dead node. It is over at once, because the node has been silent for
// longer.
const shortestTimeout = time.Second

// In returns a copy of the registry for a client whose namespace is not "default".
func (r *Registry) In(namespace string) *Registry {
	own := *r
	own.namespace = namespace
	return &own
}

// RemoveDead deletes the entry of a silent node that is known to be dead, and ends the wait for it: each of its attempts loses its
// lease now. The caller must be sure that nothing of them runs any more, since they may start elsewhere at once. RemoveDead returns
// how many attempts there were. It returns ErrState if the node has just sent a heartbeat, or if its worker has just left attempts to the
// next one: they run, and ErrUnknown if there is neither an entry nor an attempt. It may be repeated after an error.
func (r *Registry) RemoveDead(ctx context.Context, name string) (attempts int, err error) {
	e, err := r.Entry(ctx, name)
	if errors.Is(err, ErrUnknown) { // it may have been removed while a run still waits for it
		if attempts, endErr := r.endLeases(ctx, name); endErr != nil || attempts > 0 {
			return attempts, endErr
		}
		return 0, err
	}
	if err != nil {
		return 0, err
	}
	if until := e.Record.GetRestartingUntil().AsTime(); e.Record.GetState() == v1.NodeRestarting && time.Now().Before(until) {
		return 0, &Error{ErrState, fmt.Sprintf("node %s restarts until %s at the latest: %s; start its worker, or wait until then", name, until.Format(time.RFC3339), e.Record.GetReason())}
	}
	if silence := time.Since(e.BeatAt); e.lives() && silence < e.StaleAfter() {
		return 0, &Error{ErrState, fmt.Sprintf("node %s is not dead: it sent a heartbeat %s ago; stop its worker, or drain it", name, max(silence, 0).Round(time.Second))}
	}
	if attempts, err = r.endLeases(ctx, name); err != nil {
		return attempts, fmt.Errorf("end the leases of the attempts on node %s: %w", name, err)
	}
	return attempts, r.close(ctx, name, "the node is dead")
}

// lives reports whether the node is registered by a worker that sends heartbeats.
func (e *Entry) lives() bool {
	return e.Record.GetState() != v1.NodeOffline && e.Record.GetState() != v1.NodeRestarting
}

// endLeases ends the leases of all attempts on a node and returns how many there were.
func (r *Registry) endLeases(ctx context.Context, node string) (int, error) {
	var total atomic.Int64
	calls, ctx := errgroup.WithContext(ctx)
	calls.SetLimit(readers)
	req := &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: pageSize,
		Query:    fmt.Sprintf("WorkflowType IN ('%s', '%s') AND ExecutionStatus = 'Running'", names.RunWorkflow, names.FanOutWorkflow),
	}
	for {
		page, err := r.client.ListWorkflow(ctx, req)
		if err != nil {
			return int(total.Load()), errors.Join(err, calls.Wait())
		}
		for _, info := range page.GetExecutions() {
			calls.Go(func() error {
				n, err := r.endLeasesOf(ctx, info.GetExecution(), node)
				total.Add(int64(n))
				return err
			})
		}
		if req.NextPageToken = page.GetNextPageToken(); len(req.NextPageToken) == 0 {
			err := calls.Wait()
			return int(total.Load()), err
		}
	}
}

// endLeasesOf ends the leases of the attempts of one execution on a node.
func (r *Registry) endLeasesOf(ctx context.Context, execution *commonpb.WorkflowExecution, node string) (n int, err error) {
	ctx, cancel := context.WithTimeout(ctx, updateTimeout)
	defer cancel()
	id, run := execution.GetWorkflowId(), execution.GetRunId()
	d, err := r.client.DescribeWorkflowExecution(ctx, id, run)
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	for _, p := range d.GetPendingActivities() {
		on, _, isNodes := names.ParseNodeQueue(p.GetActivityOptions().GetTaskQueue().GetName())
		isRunning := p.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED || p.GetState() == enumspb.PENDING_ACTIVITY_STATE_CANCEL_REQUESTED
		if !isNodes || on != node || !isRunning || p.GetActivityType().GetName() != names.ExecuteActivity {
			continue
		}
		of := heartbeat.Activity{Namespace: r.namespace, WorkflowID: id, RunID: run, ID: p.GetActivityId()}
		switch _, err := heartbeat.SetTimeout(ctx, r.client, of, shortestTimeout); {
		case err == heartbeat.ErrGone:
		case err != nil:
			return n, err
		default:
			n++
		}
	}
	return n, nil
}
