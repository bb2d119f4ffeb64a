package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// lockTaskTimeout is after which time a step of a Lock goes to another process when the one that had it has died.
	lockTaskTimeout = 6 * time.Second
	// maxLooks is how many holders of a lock are looked up in one go, and looksAtOnce how many at the same time. The
	// oldest come first, among which are those that are gone.
	maxLooks, looksAtOnce = 500, 8
)

// Locks has the local activities by which runs and locks reach each other. It is safe for concurrent use.
type Locks struct {
	Client client.Client
}

// Ask sends what a run asks of locks, in order, and opens those that are not open.
// Sent again as a whole, it changes nothing.
func (l *Locks) Ask(ctx context.Context, req *v1.LockRequests) error {
	for _, r := range req.GetRequests() {
		id := names.LockWorkflowID(r.GetLock())
		var err error
		if r.GetAcquire() == nil {
			err = l.Client.SignalWorkflow(ctx, id, "", names.AskSignal, r)
			if _, closed := errors.AsType[*serviceerror.NotFound](err); closed {
				err = nil // a lock that is closed has nothing to give back to
			}
		} else {
			_, err = l.Client.SignalWithStartWorkflow(ctx, id, names.AskSignal, r, client.StartWorkflowOptions{
				TaskQueue: names.ControlQueue, WorkflowTaskTimeout: lockTaskTimeout, StaticSummary: "lock " + r.GetLock(),
			}, names.LockWorkflow, &v1.LockInput{Name: r.GetLock()})
		}
		if err != nil {
			return fmt.Errorf("ask for lock %s: %w", r.GetLock(), err)
		}
	}
	return nil
}

// Holders returns which holders of a lock are gone: their workflow is closed, or has
// been started anew. One that cannot be looked up counts as there.
func (l *Locks) Holders(ctx context.Context, req *v1.HoldersRequest) (*v1.HoldersResponse, error) {
	var mu sync.Mutex
	gone := map[string]bool{} // by holder and execution
	key := func(a *v1.AcquireRequest) string { return a.GetHolder() + " " + a.GetExecution() }
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(looksAtOnce)
	for _, a := range req.GetHeld() {
		mu.Lock()
		_, known := gone[key(a)]
		known = known || len(gone) >= maxLooks
		if !known {
			gone[key(a)] = false
		}
		mu.Unlock()
		if known {
			continue
		}
		group.Go(func() error {
			is, err := l.gone(ctx, a)
			mu.Lock()
			defer mu.Unlock()
			gone[key(a)] = is
			return err
		})
	}
	err := group.Wait()
	res := &v1.HoldersResponse{}
	for _, a := range req.GetHeld() {
		if gone[key(a)] {
			res.Gone = append(res.Gone, a)
		}
	}
	if len(res.GetGone()) > 0 {
		err = nil // that much is sure
	}
	return res, err
}

// gone reports whether a holder is closed, or another one has its id now.
func (l *Locks) gone(ctx context.Context, a *v1.AcquireRequest) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	d, err := l.Client.DescribeWorkflowExecution(ctx, a.GetHolder(), "")
	if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("look up %s: %w", a.GetHolder(), err)
	}
	info := d.GetWorkflowExecutionInfo()
	return info.GetCloseTime() != nil || a.GetExecution() != "" && info.GetFirstRunId() != a.GetExecution(), nil
}
