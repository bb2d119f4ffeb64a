package gateway

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"golang.org/x/sync/errgroup"

	"switchyard/activities/store/storekey"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// lastWordTimeout bounds the last query to a run before it is terminated.
	lastWordTimeout = time.Second
	// terminators is the number of workflows below a run that are terminated concurrently.
	terminators = 16
	// maxDepth bounds how many levels below a run are searched for workflows.
	maxDepth = 32
)

// cancelByForce terminates a run and every workflow below it, in whatever state they are. Nodes learn that a
// workflow has ended by a push, or from the reply to their next heartbeat. The error is Aborted if nothing
// was open.
func (g *Gateway) cancelByForce(ctx context.Context, id, reason string) (*v1.CancelRunResponse, error) {
	cause := "ended by force"
	if who := actor(ctx); who != "" {
		cause += " by " + who
	}
	if reason != "" {
		cause += ": " + reason
	}
	status := g.lastWord(ctx, id)
	t := &termination{gateway: g, cause: cause, seen: map[string]bool{id: true}}
	if err := t.terminate(ctx, id); err != nil {
		return nil, err
	}
	if t.ended == 0 {
		return nil, g.closed(ctx, id)
	}
	if t.root && status != nil {
		g.saveTerminated(ctx, id, status)
	}
	return &v1.CancelRunResponse{Id: id, Children: int32(t.children), Attempts: int32(t.attempts)}, nil
}

// lastWord returns the status of a run just before it is terminated, or nil if the run does not answer.
func (g *Gateway) lastWord(ctx context.Context, id string) *v1.StatusResponse {
	desc, err := g.reader.Describe(ctx, id)
	if err != nil || desc.GetPendingWorkflowTask().GetAttempt() > 1 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, lastWordTimeout)
	defer cancel()
	said, err := g.reader.OpenStatus(ctx, desc.GetWorkflowExecutionInfo())
	if err != nil {
		return nil
	}
	return said.Status
}

// saveTerminated stores the last status of a terminated run, because its workflow may no longer answer
// queries. Without a stored status, readers query the workflow.
func (g *Gateway) saveTerminated(ctx context.Context, id string, status *v1.StatusResponse) {
	key := storekey.Status(names.Home(id, status.GetChain()), status.GetRun().GetGeneration())
	if _, err := g.store.PutMessageIfAbsent(ctx, key, status); err != nil {
		g.log.Warn("the status of a run that was ended by force could not be saved", "run", id, "error", err)
	}
}

// termination terminates a run and the workflows below it.
type termination struct {
	gateway *Gateway
	cause   string

	mu    sync.Mutex
	seen  map[string]bool // workflow ids
	root  bool            // the run itself was open
	ended int
	// children counts the terminated workflows below the run, attempts the attempts that were running in all
	// of them.
	children, attempts int
}

func (t *termination) terminate(ctx context.Context, id string) error {
	level := []string{id}
	for depth := 0; len(level) > 0 && depth < maxDepth; depth++ {
		var mu sync.Mutex
		var below []string
		var group errgroup.Group
		group.SetLimit(terminators)
		for _, id := range level {
			group.Go(func() error {
				children, err := t.terminateOne(ctx, id, depth == 0)
				mu.Lock()
				defer mu.Unlock()
				below = append(below, children...)
				return err
			})
		}
		if err := group.Wait(); err != nil {
			return err
		}
		level = below
	}
	return nil
}

// terminateOne terminates a workflow and returns the ids of its children.
func (t *termination) terminateOne(ctx context.Context, id string, root bool) ([]string, error) {
	c := t.gateway.client
	before, err := c.DescribeWorkflowExecution(ctx, id, "")
	if rpcerror.Is[*serviceerror.NotFound](err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", id, err)
	}
	err = c.TerminateWorkflow(ctx, id, "", t.cause)
	if err != nil && !rpcerror.Is[*serviceerror.NotFound](err) {
		return nil, fmt.Errorf("terminate %s: %w", id, err)
	}
	t.count(before, err == nil, root)
	// The list of children is complete only now that the workflow can start no more of them.
	children, err := t.childrenOf(ctx, id)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	var fresh []string
	for _, child := range children {
		if !t.seen[child] {
			t.seen[child] = true
			fresh = append(fresh, child)
		}
	}
	return fresh, nil
}

func (t *termination) count(before *runview.Description, terminated, root bool) {
	if !terminated {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended++
	if root {
		t.root = true
	} else {
		t.children++
	}
	t.attempts += len(runview.RunningAttempts(before.GetPendingActivities(), time.Now()))
}

// childrenOf returns the ids of the open child workflows of a workflow. The newest execution lists its own
// children; visibility has those of the earlier executions.
func (t *termination) childrenOf(ctx context.Context, id string) ([]string, error) {
	desc, err := t.gateway.client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return nil, fmt.Errorf("look for what %s has started: %w", id, err)
	}
	var children []string
	for _, child := range desc.GetPendingChildren() {
		children = append(children, child.GetWorkflowId())
	}
	req := &workflowservice.ListWorkflowExecutionsRequest{
		Query:    "ParentWorkflowId = '" + id + "' AND ExecutionStatus = 'Running' AND WorkflowType IN ('" + names.RunWorkflow + "', '" + names.FanOutWorkflow + "')",
		PageSize: runindex.MaxPage,
	}
	for {
		page, err := t.gateway.client.ListWorkflow(ctx, req)
		if err != nil {
			return nil, fmt.Errorf("list what %s has started: %w", id, err)
		}
		for _, info := range page.GetExecutions() {
			children = append(children, info.GetExecution().GetWorkflowId())
		}
		if req.NextPageToken = page.GetNextPageToken(); len(req.NextPageToken) == 0 {
			return children, nil
		}
	}
}
