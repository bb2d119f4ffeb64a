package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"switchyard/activities"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// listInterval is how often visibility is asked which nodes there are.
	listInterval = 3 * time.Second
	// readInterval is how often the nodes' snapshots are read.
	readInterval = time.Second
	// eagerInterval is the same while a node is expected that has not shown up.
	eagerInterval = 20 * time.Millisecond
	// expectFor is how long a node is expected.
	expectFor = 30 * time.Second
	// staleAfter is how long a snapshot may stand still before its node gets nothing new.
	staleAfter = 6 * time.Second
	// readers is the number of snapshots that are read at once.
	readers = 16
	// callTimeout bounds one call to the server.
	callTimeout = 5 * time.Second
)

// fleet keeps the placement queue's picture of the nodes up to date. The open
// workflows Node are the registry; the newest heartbeat of each holds its
// snapshot.
type fleet struct {
	client    client.Client
	placement *activities.Placement
	logger    *slog.Logger
	poke      chan struct{}

	mu       sync.Mutex
	expected map[string]time.Time // node -> until when
	seen     map[string]sighting  // only touched by run
}

// sighting is a snapshot and when this process first saw it.
type sighting struct {
	snapshot *v1.NodeSnapshot
	at       time.Time
}

func newFleet(c client.Client, p *activities.Placement, logger *slog.Logger) *fleet {
	return &fleet{
		client: c, placement: p, logger: logger,
		poke:     make(chan struct{}, 1),
		expected: map[string]time.Time{},
		seen:     map[string]sighting{},
	}
}

func (f *fleet) expect(nodes []string) {
	f.mu.Lock()
	for _, n := range nodes {
		f.expected[n] = time.Now().Add(expectFor)
	}
	f.mu.Unlock()
	select {
	case f.poke <- struct{}{}:
	default:
	}
}

func (f *fleet) run(ctx context.Context) {
	var listed map[string]bool
	var nextList time.Time
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-f.poke:
		}
		if now := time.Now(); now.After(nextList) {
			if nodes, err := f.list(ctx); err != nil {
				f.logger.Debug("the nodes could not be listed", "error", err)
			} else {
				listed, nextList = nodes, now.Add(listInterval)
			}
		}
		if ctx.Err() != nil {
			return
		}
		timer.Reset(f.refresh(ctx, listed))
	}
}

// refresh reads the snapshots, tells the placement queue, and returns when to
// read them again.
func (f *fleet) refresh(ctx context.Context, listed map[string]bool) time.Duration {
	now := time.Now()
	wanted := maps.Clone(listed)
	if wanted == nil {
		wanted = map[string]bool{}
	}
	// Visibility is behind: a node that is there stays until its workflow says otherwise.
	for node := range f.seen {
		wanted[node] = true
	}
	f.mu.Lock()
	for node, until := range f.expected {
		if now.After(until) {
			delete(f.expected, node)
			continue
		}
		wanted[node] = true
	}
	f.mu.Unlock()

	snapshots := f.read(ctx, slices.Sorted(maps.Keys(wanted)))
	if ctx.Err() != nil {
		return readInterval
	}
	next := map[string]sighting{}
	var live []*v1.NodeSnapshot
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, s := range snapshots {
		old, known := f.seen[name]
		if known && old.snapshot.GetIncarnation() == s.GetIncarnation() && old.snapshot.GetSequence() == s.GetSequence() {
			next[name] = old
		} else {
			next[name] = sighting{s, now}
		}
		delete(f.expected, name)
		if now.Sub(next[name].at) < staleAfter {
			live = append(live, s)
		}
	}
	f.seen = next
	f.placement.SetNodes(live)
	if len(f.expected) > 0 {
		return eagerInterval
	}
	return readInterval
}

// list asks visibility for the nodes that are registered.
func (f *fleet) list(ctx context.Context) (map[string]bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	nodes := map[string]bool{}
	req := &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: 1000,
		Query:    fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'", names.NodeWorkflow),
	}
	for {
		page, err := f.client.ListWorkflow(ctx, req)
		if err != nil {
			return nil, err
		}
		for _, e := range page.GetExecutions() {
			if node, ok := names.ParseNodeWorkflowID(e.GetExecution().GetWorkflowId()); ok {
				nodes[node] = true
			}
		}
		if req.NextPageToken = page.GetNextPageToken(); len(req.NextPageToken) == 0 {
			return nodes, nil
		}
	}
}

// read returns the newest snapshots of nodes that have one.
func (f *fleet) read(ctx context.Context, nodes []string) map[string]*v1.NodeSnapshot {
	var mu sync.Mutex
	snapshots := make(map[string]*v1.NodeSnapshot, len(nodes))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for _, node := range nodes {
		group.Go(func() error {
			s, err := f.snapshot(ctx, node)
			if err != nil {
				f.logger.Debug("a node could not be described", "node", node, "error", err)
				mu.Lock()
				defer mu.Unlock()
				// Kept as it was: it becomes stale if this lasts.
				if old, ok := f.seen[node]; ok {
					snapshots[node] = old.snapshot
				}
				return nil
			}
			if s != nil {
				mu.Lock()
				defer mu.Unlock()
				snapshots[node] = s
			}
			return nil
		})
	}
	_ = group.Wait() // the functions return no error
	return snapshots
}

// snapshot reads a node's newest heartbeat; nil: the node is gone or has not beaten yet.
func (f *fleet) snapshot(ctx context.Context, node string) (*v1.NodeSnapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	d, err := f.client.DescribeWorkflowExecution(ctx, names.NodeWorkflowID(node), "")
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, a := range d.GetPendingActivities() {
		if a.GetActivityType().GetName() != names.HeartbeatActivity || a.GetHeartbeatDetails() == nil {
			continue
		}
		var s v1.NodeSnapshot
		if err := NewDataConverter().FromPayloads(a.GetHeartbeatDetails(), &s); err != nil {
			return nil, fmt.Errorf("snapshot of node %s: %w", node, err)
		}
		return &s, nil
	}
	return nil, nil
}
