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

	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
	"switchyard/workflows/policy"
)

const (
	// callTimeout bounds one call of the server.
	callTimeout = 5 * time.Second
	// readers is the number of entries that are read concurrently.
	readers = 16
	// pageSize is the number of entries in one page of a visibility list.
	pageSize = 1000
)

// Registry gives access to the registry of a fleet's nodes. It is safe for concurrent use.
type Registry struct {
	client    client.Client
	namespace string
	// store returns the identity of the fleet's store, or is nil if the caller does not know it.
	store func(context.Context) (string, error)
}

// New returns the registry of the client's namespace.
func New(c client.Client) *Registry { return &Registry{client: c, namespace: client.DefaultNamespace} }

// WithStore returns a copy of the registry that marks nodes with another store as stale. identity returns the
// identity of the fleet's store.
func (r *Registry) WithStore(identity func(context.Context) (string, error)) *Registry {
	own := *r
	own.store = identity
	return &own
}

// storeOf returns the identity of the fleet's store, or "" if it is unknown.
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

// List returns all nodes by name, including offline ones, without snapshots. A node whose heartbeat cannot be read is stale, with
// that reason. Staleness compares the clock of this process with the server's.
func (r *Registry) List(ctx context.Context) ([]*v1.Node, error) {
	known, err := r.Records(ctx)
	if err != nil {
		return nil, err
	}
	leader, store := r.newestLeader(ctx), r.storeOf(ctx)
	var mu sync.Mutex
	var nodes []*v1.Node
	var group errgroup.Group
	group.SetLimit(readers)
	for name, record := range known {
		group.Go(func() error {
			e, err := r.Entry(ctx, name)
			if errors.Is(err, ErrUnknown) {
				return nil // visibility is behind
			}
			if ctx.Err() != nil {
				return err
			}
			if err != nil {
				e = &Entry{Record: record}
			}
			n := View(e, time.Now(), leader, store)
			if err != nil && n.State != v1.NodeOffline {
				n.State, n.Reason = v1.NodeStale, fmt.Sprintf("its heartbeat cannot be read: %v", err)
			}
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

// Get returns a node with its snapshot, or ErrUnknown.
func (r *Registry) Get(ctx context.Context, name string) (*v1.Node, error) {
	e, err := r.Entry(ctx, name)
	if err != nil {
		return nil, err
	}
	n := View(e, time.Now(), r.newestLeader(ctx), r.storeOf(ctx))
	addNeighbors(append(r.neighborsOf(ctx, n), n))
	return n, nil
}

// Names returns the names of the registered nodes in ascending order. It reads visibility, so that new nodes appear
// with a delay.
func (r *Registry) Names(ctx context.Context) ([]string, error) {
	records, err := r.Records(ctx)
	return slices.Sorted(maps.Keys(records)), err
}

// KeptFor returns what the registered nodes are kept for, sorted.
func (r *Registry) KeptFor(ctx context.Context) ([]string, error) {
	records, err := r.Records(ctx)
	if err != nil {
		return nil, err
	}
	var all []string
	for _, record := range records {
		all = append(all, policy.TermsInForce(record.GetRegistration().GetSnapshot().GetTerms(), record.GetTerms()).GetKeptFor()...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// Records returns the records of the registered nodes by name. It reads visibility, so that new nodes and changes
// appear with a delay.
func (r *Registry) Records(ctx context.Context) (map[string]*historyv1.NodeRecord, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	records := map[string]*historyv1.NodeRecord{}
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
			records[node] = recordOf(node, e)
		}
		if req.NextPageToken = page.GetNextPageToken(); len(req.NextPageToken) == 0 {
			return records, nil
		}
	}
}

// Entry returns the entry of a node, or ErrUnknown if the node is not registered.
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
	return entryOf(name, d), nil
}

// Leader returns the newest heartbeat of the leader and when the server received it, or nil if
// the queue has no leader.
func (r *Registry) Leader(ctx context.Context) (*historyv1.LeaderHeartbeat, time.Time, error) {
	return r.leaderHeartbeat(ctx, func(state enumspb.PendingActivityState) bool {
		// Between two leaders, the heartbeat of the previous one is still there.
		return state == enumspb.PENDING_ACTIVITY_STATE_STARTED
	})
}

// LastLeader returns the heartbeat of the leader, or of the previous leader while the cluster has none.
func (r *Registry) LastLeader(ctx context.Context) (*historyv1.LeaderHeartbeat, time.Time, error) {
	return r.leaderHeartbeat(ctx, func(enumspb.PendingActivityState) bool { return true })
}

// RelieveLeader ends the leadership of a leader that is known to be dead, so that another
// process gets the leadership immediately. dead is the newest heartbeat of that leader. RelieveLeader is a no-op if
// another leader has followed.
func (r *Registry) RelieveLeader(ctx context.Context, namespace string, dead *historyv1.LeaderHeartbeat) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	d, err := r.client.DescribeWorkflowExecution(ctx, names.LeaderWorkflowID, "")
	if err != nil {
		return fmt.Errorf("read who leads: %w", err)
	}
	for _, a := range d.GetPendingActivities() {
		var beat historyv1.LeaderHeartbeat
		if a.GetState() != enumspb.PENDING_ACTIVITY_STATE_STARTED || decode(a.GetHeartbeatDetails().GetPayloads(), &beat) != nil || beat.GetEpoch() != dead.GetEpoch() {
			continue
		}
		exec := d.GetWorkflowExecutionInfo().GetExecution()
		err := r.client.CompleteActivityByID(ctx, namespace, exec.GetWorkflowId(), exec.GetRunId(), a.GetActivityId(), nil,
			temporal.NewApplicationErrorWithOptions("the leader is dead", "OwnerDied", temporal.ApplicationErrorOptions{Category: temporal.ApplicationErrorCategoryBenign}))
		if err != nil {
			return fmt.Errorf("relieve the leader: %w", err)
		}
	}
	return nil
}

func (r *Registry) leaderHeartbeat(ctx context.Context, wanted func(enumspb.PendingActivityState) bool) (*historyv1.LeaderHeartbeat, time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	d, err := r.client.DescribeWorkflowExecution(ctx, names.LeaderWorkflowID, "")
	if _, none := errors.AsType[*serviceerror.NotFound](err); none {
		return nil, time.Time{}, nil
	}
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("read who leads: %w", err)
	}
	for _, a := range d.GetPendingActivities() {
		if !wanted(a.GetState()) || a.GetHeartbeatDetails() == nil {
			continue
		}
		var beat historyv1.LeaderHeartbeat
		if err := decode(a.GetHeartbeatDetails().GetPayloads(), &beat); err != nil {
			return nil, time.Time{}, fmt.Errorf("heartbeat of the leader: %w", err)
		}
		return &beat, a.GetLastHeartbeatTime().AsTime(), nil
	}
	return nil, time.Time{}, nil
}

// newestLeader returns the newest heartbeat of the leader, or nil if it is unknown.
func (r *Registry) newestLeader(ctx context.Context) *historyv1.LeaderHeartbeat {
	beat, _, err := r.Leader(ctx)
	if err != nil {
		return nil
	}
	return beat
}
