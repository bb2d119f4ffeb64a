package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"golang.org/x/sync/errgroup"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// callTimeout bounds one call to the server.
	callTimeout = 5 * time.Second
	// readers is the number of entries that are read at once.
	readers = 16
	// pageSize is how many entries visibility lists in one answer.
	pageSize = 1000
)

// Registry is the fleet's registry. It is safe for concurrent use.
type Registry struct {
	client client.Client
	// store returns the identity of the fleet's store; nil: whoever asks does not know it.
	store func(context.Context) (string, error)
}

// New returns the registry of the client's namespace.
func New(c client.Client) *Registry { return &Registry{client: c} }

// WithStore returns the same registry, which shows nodes that use another store than the
// one that identity distinguishes from others.
func (r *Registry) WithStore(identity func(context.Context) (string, error)) *Registry {
	return &Registry{client: r.client, store: identity}
}

// storeOf returns the identity of the fleet's store, or "" if it is not known.
func (r *Registry) storeOf(ctx context.Context) string {
	if r.store == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	id, err := r.store(ctx)
	if err != nil {
		return ""
	}
	return id
}

// List returns all nodes by name, those that are offline too, without snapshots.
// What is stale is decided by the clock of this process against that of the server.
func (r *Registry) List(ctx context.Context) ([]*v1.Node, error) {
	known, err := r.Names(ctx)
	if err != nil {
		return nil, err
	}
	owner, store := r.newestOwner(ctx), r.storeOf(ctx)
	var mu sync.Mutex
	var nodes []*v1.Node
	group, groupCtx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for _, name := range known {
		group.Go(func() error {
			e, err := r.Entry(groupCtx, name)
			if errors.Is(err, ErrUnknown) {
				return nil // visibility is behind
			}
			if err != nil {
				return err
			}
			n := View(e, time.Now(), owner, store)
			mu.Lock()
			defer mu.Unlock()
			nodes = append(nodes, n)
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	addNeighbors(nodes)
	for _, n := range nodes {
		n.Snapshot = nil
	}
	slices.SortFunc(nodes, func(a, b *v1.Node) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return nodes, nil
}

// Get returns a node with its snapshot; ErrUnknown: there is none of that name.
func (r *Registry) Get(ctx context.Context, name string) (*v1.Node, error) {
	e, err := r.Entry(ctx, name)
	if err != nil {
		return nil, err
	}
	n := View(e, time.Now(), r.newestOwner(ctx), r.storeOf(ctx))
	addNeighbors(append(r.neighborsOf(ctx, n), n))
	return n, nil
}

// Names lists the nodes that are registered, sorted, as visibility knows them: a
// new one shows up late.
func (r *Registry) Names(ctx context.Context) ([]string, error) {
	records, err := r.Records(ctx)
	return slices.Sorted(maps.Keys(records)), err
}

// Records lists the records of the nodes that are registered, by name, as visibility knows them: both a new node and
// what has changed of a known one show up late.
func (r *Registry) Records(ctx context.Context) (map[string]*v1.NodeRecord, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	records := map[string]*v1.NodeRecord{}
	req := &workflowservice.ListWorkflowExecutionsRequest{
		PageSize: pageSize,
		Query:    fmt.Sprintf("WorkflowType = '%s' AND ExecutionStatus = 'Running'", names.NodeWorkflow),
	}
	for {
		page, err := r.client.ListWorkflow(ctx, req)
		if err != nil {
			return nil, fmt.Errorf("list the nodes: %w", err)
		}
		for _, e := range page.GetExecutions() {
			node, ok := names.ParseNodeWorkflowID(e.GetExecution().GetWorkflowId())
			if !ok {
				continue
			}
			if records[node], err = recordOf(node, e); err != nil {
				return nil, err
			}
		}
		if req.NextPageToken = page.GetNextPageToken(); len(req.NextPageToken) == 0 {
			return records, nil
		}
	}
}

// Entry reads what the registry holds of a node; ErrUnknown: it is not registered.
func (r *Registry) Entry(ctx context.Context, name string) (*Entry, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	d, err := r.client.DescribeWorkflowExecution(ctx, names.NodeWorkflowID(name), "")
	if err != nil {
		return nil, translate(ctx, name, err)
	}
	if d.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return nil, &Error{ErrUnknown, fmt.Sprintf("there is no node %q", name)}
	}
	return entryOf(name, d)
}

// Owner returns the newest heartbeat of the owner of the placement queue, and
// when the server took it; nil: it has no leader.
func (r *Registry) Owner(ctx context.Context) (*v1.OwnerBeat, time.Time, error) {
	return r.ownerBeat(ctx, func(state enumspb.PendingActivityState) bool {
		// Between two owners the beat of the last one is still there.
		return state == enumspb.PENDING_ACTIVITY_STATE_STARTED
	})
}

// LastOwner is Owner, and between two owners the beat of the one that has ended.
func (r *Registry) LastOwner(ctx context.Context) (*v1.OwnerBeat, time.Time, error) {
	return r.ownerBeat(ctx, func(enumspb.PendingActivityState) bool { return true })
}

// RelieveOwner ends the ownership of the placement queue of an owner that is known to be
// dead, whose newest heartbeat is given, so that another process gets it at once. It
// does nothing when another owner has followed.
func (r *Registry) RelieveOwner(ctx context.Context, namespace string, dead *v1.OwnerBeat) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	d, err := r.client.DescribeWorkflowExecution(ctx, names.OwnerWorkflowID, "")
	if err != nil {
		return fmt.Errorf("read who owns the placement queue: %w", err)
	}
	for _, a := range d.GetPendingActivities() {
		var beat v1.OwnerBeat
		if a.GetState() != enumspb.PENDING_ACTIVITY_STATE_STARTED || decode(a.GetHeartbeatDetails().GetPayloads(), &beat) != nil || beat.GetEpoch() != dead.GetEpoch() {
			continue
		}
		exec := d.GetWorkflowExecutionInfo().GetExecution()
		err := r.client.CompleteActivityByID(ctx, namespace, exec.GetWorkflowId(), exec.GetRunId(), a.GetActivityId(), nil,
			temporal.NewApplicationErrorWithOptions("the owner is dead", "OwnerDied", temporal.ApplicationErrorOptions{Category: temporal.ApplicationErrorCategoryBenign}))
		if err != nil {
			return fmt.Errorf("relieve the owner of the placement queue: %w", err)
		}
	}
	return nil
}

func (r *Registry) ownerBeat(ctx context.Context, wanted func(enumspb.PendingActivityState) bool) (*v1.OwnerBeat, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	d, err := r.client.DescribeWorkflowExecution(ctx, names.OwnerWorkflowID, "")
	if _, none := errors.AsType[*serviceerror.NotFound](err); none {
		return nil, time.Time{}, nil
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read who owns the placement queue: %w", err)
	}
	for _, a := range d.GetPendingActivities() {
		if !wanted(a.GetState()) || a.GetHeartbeatDetails() == nil {
			continue
		}
		var beat v1.OwnerBeat
		if err := decode(a.GetHeartbeatDetails().GetPayloads(), &beat); err != nil {
			return nil, time.Time{}, fmt.Errorf("heartbeat of the owner of the placement queue: %w", err)
		}
		return &beat, a.GetLastHeartbeatTime().AsTime(), nil
	}
	return nil, time.Time{}, nil
}

// newestOwner returns what the leader reports of the nodes, or nil if that is not known.
func (r *Registry) newestOwner(ctx context.Context) *v1.OwnerBeat {
	beat, _, err := r.Owner(ctx)
	if err != nil {
		return nil
	}
	return beat
}
