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
	// lastWordTimeout bounds the question to a run that is about to be terminated.
	lastWordTimeout = time.Second
	// terminators is how many workflows below a run are terminated at once.
	terminators = 16
	// maxDepth is how far below a run workflows are looked for.
	maxDepth = 32
)

// cancelByForce terminates a run with all that it has started, in whatever state they
// are. The end of a workflow is pushed to the nodes that run its attempts, or reaches
// them with the answer to a beat. The error is Aborted when nothing was open.
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

// lastWord returns what a run says of itself before it is terminated, or nil if it does not answer.
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

// saveTerminated keeps what a terminated run has said last, which its workflow may not
// answer any more. Without it, readers ask the workflow.
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
	// children are the workflows below the run that were terminated, attempts what ran of all of them.
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
	// What it has started can be listed completely only now that it starts nothing more.
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

// childrenOf returns the ids of open workflows that a workflow has started: those that
// its newest execution knows, and those of the executions before it, which visibility knows.
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
