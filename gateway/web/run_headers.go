package web

import (
	"context"
	"fmt"
	"sync"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// maxHeaders bounds the runs that one update reads individually.
	maxHeaders = 50
	// parallelHeaders bounds how many runs are read concurrently.
	parallelHeaders = 4
)

// runHeaders reads the fields of runs that lists leave out: error, approval and submitter. It caches what can no longer
// change. It is for a single goroutine.
type runHeaders struct{ known map[string]*v1.Run }

// headerKey identifies a run in a state, because the header changes with the state.
func headerKey(run *v1.Run) string {
	return fmt.Sprint(run.GetId(), " ", run.GetGeneration(), " ", run.GetState())
}

// readHeaders returns the headers of listed runs by ID. It leaves out runs that cannot be read and those beyond maxHeaders.
func (h *runHeaders) readHeaders(ctx context.Context, s services, runs []*v1.Run) map[string]*v1.Run {
	found, known := map[string]*v1.Run{}, map[string]*v1.Run{}
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(parallelHeaders)
	asked := map[string]bool{}
	for _, run := range runs {
		key := headerKey(run)
		if header := h.known[key]; header != nil && header.GetApproval().GetState() != v1.ApprovalPending {
			mu.Lock()
			found[run.GetId()], known[key] = header, header
			mu.Unlock()
			continue
		}
		if asked[run.GetId()] || len(asked) == maxHeaders {
			continue
		}
		asked[run.GetId()] = true
		group.Go(func() error {
			res, err := s.runs.GetRun(ctx, connect.NewRequest(&v1.GetRunRequest{Id: run.GetId(), PageSize: 1, Brief: true}))
			if err == nil {
				header := res.Msg.GetRun()
				header.Tasks = nil
				mu.Lock()
				found[run.GetId()], known[key] = header, header
				mu.Unlock()
			}
			return nil
		})
	}
	_ = group.Wait() // every function returns nil
	h.known = known
	return found
}

// pendingApproval returns the listed runs that await approval before they start, with their approval. Other runs in the state pending_approval
// wait for approval tasks.
func (h *runHeaders) pendingApproval(ctx context.Context, s services, list *v1.ListRunsResponse) *v1.ListRunsResponse {
	headers := h.readHeaders(ctx, s, list.GetItems())
	waiting := &v1.ListRunsResponse{NextPageToken: list.GetNextPageToken()}
	for _, run := range list.GetItems() {
		if approval := headers[run.GetId()].GetApproval(); approval.GetState() == v1.ApprovalPending {
			run.Approval = approval
			waiting.Items = append(waiting.Items, run)
		}
	}
	return waiting
}

// withErrors sets the errors of the first runs of a list, at most `most` of them, and returns the list.
func (h *runHeaders) withErrors(ctx context.Context, s services, list *v1.ListRunsResponse, most int) *v1.ListRunsResponse {
	runs := list.GetItems()[:min(most, len(list.GetItems()))]
	headers := h.readHeaders(ctx, s, runs)
	for _, run := range runs {
		if run.GetError() == "" {
			run.Error = headers[run.GetId()].GetError()
		}
	}
	return list
}
