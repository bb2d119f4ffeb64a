package runretry

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"connectrpc.com/connect"
	workflowpb "go.temporal.io/api/workflow/v1"
	"golang.org/x/sync/errgroup"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// deadLetters lists and purges dead letters.
type deadLetters struct {
	index   *runindex.Index
	reader  *runview.Reader
	store   *store.Store
	letters letterReader
}

const (
	// defaultDeadLetterPage is the number of runs that a page of dead letters covers if the request names no size.
	defaultDeadLetterPage = 100
	// runsAtOnce is the number of runs that one list reads concurrently.
	runsAtOnce = 8
)

// deadLettersQuery selects the executions of runs, open or closed, that report dead letters. The status of a run tells
// which of them are still dead letters.
const deadLettersQuery = runindex.RunsQuery + " AND " + names.DeadLettersAttribute + " > 0"

// ListDeadLetters lists the tasks that have used up their retries, except purged ones. A page covers a number of runs,
// newest first; within the page the newest dead letter comes first.
func (d deadLetters) ListDeadLetters(ctx context.Context, req *connect.Request[v1.ListDeadLettersRequest]) (*connect.Response[v1.ListDeadLettersResponse], error) {
	if req.Msg.GetRun() != "" {
		id, err := d.index.Resolve(ctx, req.Msg.GetRun())
		if err != nil {
			return nil, err
		}
		letters, err := d.letters.read(ctx, d.reader, id)
		if err != nil {
			return nil, err
		}
		return connect.NewResponse(&v1.ListDeadLettersResponse{Items: filterDeadLetters(letters, req.Msg)}), nil
	}
	pages, err := paging.ListOf(req.Msg)
	if err != nil {
		return nil, err
	}
	after, err := pages.DecodeRun(req.Msg.GetPageToken())
	if err != nil {
		return nil, err
	}
	limit := int(req.Msg.GetPageSize())
	if limit == 0 {
		limit = defaultDeadLetterPage
	}
	found, err := d.index.NewestExecutions(ctx, deadLettersQuery, after, limit+1, runindex.AnyExecution)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	res := &v1.ListDeadLettersResponse{}
	if len(found) > limit {
		found = found[:limit]
		res.NextPageToken = pages.EncodeRun(paging.PositionOf(found[limit-1]))
	}
	letters, warnings, err := d.readAll(ctx, found)
	if err != nil {
		return nil, err
	}
	res.Items, res.Warnings = filterDeadLetters(letters, req.Msg), warnings
	return connect.NewResponse(res), nil
}

// filterDeadLetters returns the dead letters that match the filters of a request, newest first.
func filterDeadLetters(letters []*v1.DeadLetter, req *v1.ListDeadLettersRequest) []*v1.DeadLetter {
	letters = slices.DeleteFunc(letters, func(d *v1.DeadLetter) bool {
		return req.GetType() != "" && d.GetType() != req.GetType() || req.GetNode() != "" && lastNode(d) != req.GetNode()
	})
	slices.SortStableFunc(letters, func(a, b *v1.DeadLetter) int {
		return b.GetDeadLetteredAt().AsTime().Compare(a.GetDeadLetteredAt().AsTime())
	})
	return letters
}

// lastNode returns the node of the last attempt, or "" if there was no attempt.
func lastNode(d *v1.DeadLetter) string {
	if n := len(d.GetAttempts()); n > 0 {
		return d.GetAttempts()[n-1].GetNode()
	}
	return ""
}

// readAll reads the dead letters of several runs. It skips runs that no longer exist and names those that cannot be
// read in the warnings.
func (d deadLetters) readAll(ctx context.Context, runs []*workflowpb.WorkflowExecutionInfo) (letters []*v1.DeadLetter, warnings []string, err error) {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runsAtOnce)
	listing := d.reader.NewListing()
	for _, info := range runs {
		group.Go(func() error {
			found, err := d.letters.read(ctx, listing, info.GetExecution().GetWorkflowId())
			if rpcerror.CodeOf(err) == connect.CodeNotFound {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			if runview.IsOfOneRun(err) && ctx.Err() == nil {
				warnings = append(warnings, fmt.Sprintf("cannot list the dead letters of run %s: %v", info.GetExecution().GetWorkflowId(), err))
				return nil
			}
			letters = append(letters, found...)
			return err
		})
	}
	return letters, warnings, group.Wait()
}

// PurgeDeadLetter removes dead letters from the list for good.
func (d deadLetters) PurgeDeadLetter(ctx context.Context, req *connect.Request[v1.PurgeDeadLetterRequest]) (*connect.Response[v1.PurgeDeadLetterResponse], error) {
	id, err := d.index.Resolve(ctx, req.Msg.GetRun())
	if err != nil {
		return nil, err
	}
	v, err := d.reader.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	tasks, err := d.letters.selectRefs(ctx, v, req.Msg.GetTask())
	if err != nil {
		return nil, err
	}
	for _, about := range tasks {
		mark := &historyv1.ClaimRef{Task: about.Name, Claim: about.Claim()}
		if err := d.store.PutMessage(ctx, storekey.Purged(v.Home(), v.Run.GetGeneration(), about.Name), mark); err != nil {
			return nil, fmt.Errorf("purge the dead letter of task %s of run %s: %w", about.Name, id, err)
		}
	}
	return connect.NewResponse(&v1.PurgeDeadLetterResponse{Run: id, Tasks: namesOf(tasks)}), nil
}
