package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
)

const (
	// lockTaskTimeout is how long a workflow task of a Lock waits for a dead process before another process gets the
	// task.
	lockTaskTimeout = 6 * time.Second
	// maxLooks bounds how many holders of a lock one call looks up, and looksAtOnce how many in parallel. The oldest
	// holders come first: they are the ones most likely gone.
	maxLooks, looksAtOnce = 500, 8
)

// Locks has the local activities that connect runs and locks. It is safe for concurrent use.
type Locks struct {
	Client client.Client
	// Watch returns a function that reports whether an attempt of a closed run may still run.
	Watch func(*historyv1.AwaitAnswerRequest) func(context.Context) bool

	mu sync.Mutex
	// ending holds the closed holders that may still have running attempts, by holder, execution and claim.
	ending map[string]*endingHolder
}

// Ask sends the requests of a run to locks in order, and starts the workflows of locks that are not open. It is
// idempotent.
func (l *Locks) Ask(ctx context.Context, req *historyv1.LockRequests) error {
	for _, r := range req.GetRequests() {
		id := names.LockWorkflowID(r.GetLock())
		var err error
		if r.GetAcquire() == nil {
			err = l.Client.SignalWorkflow(ctx, id, "", names.AskSignal, r)
			if _, closed := errors.AsType[*serviceerror.NotFound](err); closed {
				err = nil // a closed lock has no holder that could release it
			}
		} else {
			_, err = l.Client.SignalWithStartWorkflow(ctx, id, names.AskSignal, r, client.StartWorkflowOptions{
				TaskQueue: names.ControlQueue, WorkflowTaskTimeout: lockTaskTimeout, StaticSummary: "lock " + r.GetLock(),
			}, names.LockWorkflow, &historyv1.LockInput{Name: r.GetLock()})
		}
		if err != nil {
			return fmt.Errorf("request lock %s: %w", r.GetLock(), err)
		}
	}
	return nil
}

// Holders returns the holders of a lock that are gone: their workflow is closed or has been replaced, and none of their
// attempts still runs. A holder that cannot be looked up does not count as gone.
func (l *Locks) Holders(ctx context.Context, req *historyv1.HoldersRequest) (*historyv1.HoldersResponse, error) {
	var mu sync.Mutex
	gone := map[string]bool{} // by holder and execution
	var ending atomic.Bool
	key := func(a *historyv1.AcquireRequest) string {
		return a.GetHolder() + " " + a.GetExecution() + " " + a.GetClaim()
	}
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
			if is && err == nil && l.mayRun(ctx, key(a), a) {
				is = false
				ending.Store(true)
			}
			mu.Lock()
			defer mu.Unlock()
			gone[key(a)] = is
			return err
		})
	}
	err := group.Wait()
	res := &historyv1.HoldersResponse{Ending: ending.Load()}
	for _, a := range req.GetHeld() {
		if gone[key(a)] {
			res.Gone = append(res.Gone, a)
		}
	}
	if len(res.GetGone()) > 0 {
		err = nil // the known ones are certain
	}
	return res, err
}

// gone reports whether a holder is closed or its id now belongs to another execution.
func (l *Locks) gone(ctx context.Context, a *historyv1.AcquireRequest) (bool, error) {
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

const (
	// abandonedTimeout bounds the search for the attempts of a closed holder, whose history may be long.
	abandonedTimeout = time.Minute
	// abandonedPatience is how long one check of the holders waits for that search.
	abandonedPatience = time.Second
)

// endingHolder is a closed holder of a lock that may still have running attempts.
type endingHolder struct {
	// found is closed when watched holds the attempts that may still run, or err says why they are unknown.
	found   chan struct{}
	watched []func(context.Context) bool
	err     error
	// looks serialises checks of watched: an activity that has timed out may overlap the next one.
	looks sync.Mutex
}

// mayRun reports whether an attempt may still run under the claim of a holder that is gone. While that is unknown, it
// returns true.
func (l *Locks) mayRun(ctx context.Context, key string, a *historyv1.AcquireRequest) bool {
	l.mu.Lock()
	h := l.ending[key]
	if h == nil {
		h = &endingHolder{found: make(chan struct{})}
		if l.ending == nil {
			l.ending = map[string]*endingHolder{}
		}
		l.ending[key] = h
		go l.find(context.WithoutCancel(ctx), h, proto.CloneOf(a))
	}
	l.mu.Unlock()
	select {
	case <-h.found:
	case <-ctx.Done():
		return true
	case <-time.After(abandonedPatience):
		return true
	}
	h.looks.Lock()
	defer h.looks.Unlock()
	for _, runs := range h.watched {
		if runs(ctx) {
			return true
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.ending, key) // on an error the next call searches again
	return h.err != nil || ctx.Err() != nil
}

// find searches for the attempts of a closed holder. It ends after abandonedTimeout at the latest.
func (l *Locks) find(ctx context.Context, h *endingHolder, a *historyv1.AcquireRequest) {
	ctx, cancel := context.WithTimeout(ctx, abandonedTimeout)
	defer cancel()
	defer close(h.found)
	var attempts []*historyv1.AwaitAnswerRequest
	if attempts, h.err = l.abandoned(ctx, a); h.err == nil {
		for _, attempt := range attempts {
			h.watched = append(h.watched, l.Watch(attempt))
		}
	}
}

// abandoned returns the attempts under the claim of a holder that was closed from outside. The claim of a run covers all
// of its attempts.
func (l *Locks) abandoned(ctx context.Context, a *historyv1.AcquireRequest) ([]*historyv1.AwaitAnswerRequest, error) {
	last, err := lastExecution(ctx, l.Client, a.GetHolder(), a.GetAsker())
	if err != nil {
		return nil, err
	}
	all, err := abandonedAttempts(ctx, l.Client, a.GetHolder(), last)
	if _, _, isUnit := names.ParseAttemptID(a.GetClaim()); !isUnit {
		return all, err
	}
	return slices.DeleteFunc(all, func(attempt *historyv1.AwaitAnswerRequest) bool {
		return attemptID(attempt.GetAttempt()) != a.GetClaim()
	}), err
}

// attemptID returns the id of an attempt's activity, which is also the lock claim of its task or instance.
func attemptID(req *historyv1.ExecuteRequest) string {
	return names.AttemptID(unitName(req), req.GetClaim())
}

// lastExecution returns the last execution of a chain, given one of its executions.
func lastExecution(ctx context.Context, c client.Client, id, runID string) (string, error) {
	for {
		events := c.GetWorkflowHistory(ctx, id, runID, false, enumspb.HISTORY_EVENT_FILTER_TYPE_CLOSE_EVENT)
		if !events.HasNext() {
			return runID, nil
		}
		end, err := events.Next()
		if _, unknown := errors.AsType[*serviceerror.NotFound](err); unknown {
			return runID, nil
		}
		if err != nil {
			return "", fmt.Errorf("read the outcome of %s: %w", id, err)
		}
		next := end.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId()
		if next == "" {
			return runID, nil
		}
		runID = next
	}
}
