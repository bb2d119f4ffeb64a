package tasklist

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	workflowpb "go.temporal.io/api/workflow/v1"
	"golang.org/x/sync/errgroup"

	"switchyard/activities/registry"
	"switchyard/gateway/runindex"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/visibility"
)

// Nodes reads the node registry. Its methods may be called concurrently. Their errors are those of activities/registry.
type Nodes interface {
	// List returns the nodes, in any order, with their numbers of running attempts.
	List(ctx context.Context) ([]*v1.Node, error)
	// Get returns a node with its snapshot.
	Get(ctx context.Context, name string) (*v1.Node, error)
}

// nodesAtOnce is the number of nodes that are read concurrently.
const nodesAtOnce = 16

// matcher reports whether a run may have requested tasks.
type matcher func(*workflowpb.WorkflowExecutionInfo) bool

// search returns a query for the runs that may have requested tasks, and a matcher for its results.
func (l *Lister) search(ctx context.Context, req *v1.ListTasksRequest) (string, matcher, error) {
	of := &v1.ListRunsRequest{Name: req.GetWorkflow(), Batch: req.GetBatch(), Node: req.GetNode()}
	holdsNode := req.GetState() == v1.TaskAssigned || req.GetState() == v1.TaskRunning
	if holdsNode {
		of.Node = "" // the nodes report their runs
	}
	filter, err := l.index.Filter(ctx, of)
	if err != nil {
		return "", nil, err
	}
	query := filter.Query()
	if kind := req.GetType(); kind != "" {
		// The types of a run's tasks are unknown until a control process has begun the run.
		query += " AND (" + names.TypesAttribute + " = '" + kind + "' OR " + names.TypesAttribute + " IS NULL)"
	}
	switch state := req.GetState(); {
	case state == v1.TaskDeadLetter:
		query += " AND " + names.DeadLettersAttribute + " > 0"
	case slices.Contains(v1.OpenTaskStates(), state):
		query += runindex.AndOpen
	}
	if !holdsNode || req.GetType() != "" && !v1.NeedsNode(req.GetType()) {
		return query, filter.Matches, nil
	}
	running, err := l.runsOnNodes(ctx, req.GetNode())
	if err != nil {
		return "", nil, err
	}
	return query, func(info *workflowpb.WorkflowExecutionInfo) bool {
		onNode := running[info.GetExecution().GetWorkflowId()]
		return filter.Matches(info) && (onNode || req.GetNode() == "" && req.GetType() == "" && hasNodeless(info))
	}, nil
}

// hasNodeless reports whether a run has tasks that need no node.
func hasNodeless(info *workflowpb.WorkflowExecutionInfo) bool {
	return slices.ContainsFunc(visibility.Decode(info.GetSearchAttributes()).Types, func(kind string) bool { return !v1.NeedsNode(kind) })
}

// runsOnNodes returns the runs with attempts that occupy a node, or any node if name is "".
func (l *Lister) runsOnNodes(ctx context.Context, name string) (map[string]bool, error) {
	nodes := []string{name}
	if name == "" {
		all, err := l.nodes.List(ctx)
		if err != nil {
			return nil, fmt.Errorf("list nodes: %w", err)
		}
		nodes = nil
		for _, n := range all {
			if n.GetRunning() > 0 {
				nodes = append(nodes, n.GetName())
			}
		}
	}
	var mu sync.Mutex
	runs := map[string]bool{}
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(nodesAtOnce)
	for _, node := range nodes {
		group.Go(func() error {
			n, err := l.nodes.Get(groupCtx, node)
			if errors.Is(err, registry.ErrUnknown) {
				return nil
			}
			if err != nil {
				return fmt.Errorf("look at node %s: %w", node, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, attempt := range n.GetSnapshot().GetRunning() {
				runs[attempt.GetRunId()] = true
			}
			return nil
		})
	}
	return runs, group.Wait()
}
