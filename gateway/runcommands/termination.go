package runcommands

import (
	"context"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	"switchyard/workflows/names"
)

// termination terminates a run and the workflows below it.
type termination struct {
	client client.Client
	cause  string

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
	c := t.client
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
	desc, err := t.client.DescribeWorkflowExecution(ctx, id, "")
	if err != nil {
		return nil, fmt.Errorf("list the children of %s: %w", id, err)
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
		page, err := t.client.ListWorkflow(ctx, req)
		if err != nil {
			return nil, fmt.Errorf("list the children of %s: %w", id, err)
		}
		for _, info := range page.GetExecutions() {
			children = append(children, info.GetExecution().GetWorkflowId())
		}
		if req.NextPageToken = page.GetNextPageToken(); len(req.NextPageToken) == 0 {
			return children, nil
		}
	}
}
