package gateway

import (
	"context"
	"errors"
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
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

const (
	// defaultDeadLetterPage is the number of runs that a page of dead letters covers if the request names no size.
	defaultDeadLetterPage = 100
	// readers is the number of runs that one list reads concurrently.
	readers = 8
)

// deadLettersQuery selects the executions of runs, open or closed, that report dead letters. The status of a run tells
// which of them are still dead letters.
const deadLettersQuery = runindex.RunsQuery + " AND " + names.DeadLettersAttribute + " > 0"

// ListDeadLetters lists the tasks that have used up their retries, except purged ones. A page covers a number of runs,
// newest first; within the page the newest dead letter comes first.
func (g *Gateway) ListDeadLetters(ctx context.Context, req *connect.Request[v1.ListDeadLettersRequest]) (*connect.Response[v1.ListDeadLettersResponse], error) {
	if req.Msg.GetRun() != "" {
		id, err := g.index.Resolve(ctx, req.Msg.GetRun())
		if err != nil {
			return nil, err
		}
		letters, err := g.deadLetters(ctx, id)
		if err != nil {
			return nil, err
		}
		return connect.NewResponse(&v1.ListDeadLettersResponse{Items: wanted(letters, req.Msg)}), nil
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
	found, err := g.index.NewestExecutions(ctx, deadLettersQuery, after, limit+1, runindex.AnyExecution)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	res := &v1.ListDeadLettersResponse{}
	if len(found) > limit {
		found = found[:limit]
		res.NextPageToken = pages.EncodeRun(paging.PositionOf(found[limit-1]))
	}
	letters, warnings, err := g.deadLettersOf(ctx, found)
	if err != nil {
		return nil, err
	}
	res.Items, res.Warnings = wanted(letters, req.Msg), warnings
	return connect.NewResponse(res), nil
}

// wanted returns the dead letters that match the filters of a request, newest first.
func wanted(letters []*v1.DeadLetter, req *v1.ListDeadLettersRequest) []*v1.DeadLetter {
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

// deadLettersOf reads the dead letters of several runs. It skips runs that no longer exist and names those that cannot be
// read in the warnings.
func (g *Gateway) deadLettersOf(ctx context.Context, runs []*workflowpb.WorkflowExecutionInfo) (letters []*v1.DeadLetter, warnings []string, err error) {
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readers)
	for _, info := range runs {
		group.Go(func() error {
			found, err := g.deadLetters(ctx, info.GetExecution().GetWorkflowId())
			if rpcerror.CodeOf(err) == connect.CodeNotFound {
				return nil
			}
			mu.Lock()
			defer mu.Unlock()
			if runview.IsUnreadable(err) {
				warnings = append(warnings, fmt.Sprintf("the dead letters of run %s are left out: %v", info.GetExecution().GetWorkflowId(), err))
				return nil
			}
			letters = append(letters, found...)
			return err
		})
	}
	return letters, warnings, group.Wait()
}

// deadLetters returns the unpurged dead letters of a run, ordered by task name and instance number.
func (g *Gateway) deadLetters(ctx context.Context, id string) ([]*v1.DeadLetter, error) {
	v, err := g.reader.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	var letters []*v1.DeadLetter
	dead, err := g.dead(ctx, v, v.Names)
	if err != nil {
		return nil, err
	}
	for _, about := range dead {
		t := about.Brief()
		letters = append(letters, &v1.DeadLetter{
			Run: id, Task: about.Name, Attempts: about.Attempts(), Error: t.GetError(), Reason: t.GetReason(),
			Type: t.GetType(), Workflow: v.Run.GetName(), Generation: v.Run.GetGeneration(),
			DeadLetteredAt: runview.DeadLetteredAt(t),
		})
	}
	return letters, nil
}

// dead returns the unpurged dead letters among some tasks and their instances.
func (g *Gateway) dead(ctx context.Context, v *runview.View, tasks []string) ([]runview.TaskRef, error) {
	var all []runview.TaskRef
	add := func(about runview.TaskRef) error {
		if about.Brief().GetState() != v1.TaskDeadLetter {
			return nil
		}
		purged, err := g.purged(ctx, v, about)
		if err == nil && !purged {
			all = append(all, about)
		}
		return err
	}
	for _, name := range tasks {
		t := v.Tasks[name]
		if err := add(runview.TaskRef{Name: name, TaskName: name, Task: t}); err != nil {
			return nil, err
		}
		for left, from := t.Task.GetCounts()[v1.TaskDeadLetter], 0; left > 0; {
			some, err := g.reader.Instances(ctx, v, name, from, defaultInstancePage)
			if err != nil {
				return nil, err
			}
			if len(some) == 0 {
				break
			}
			for _, i := range some {
				from = int(i.Instance.GetIndex()) + 1
				if i.Brief.GetState() != v1.TaskDeadLetter {
					continue
				}
				left--
				if err := add(runview.TaskRef{Name: names.InstanceName(name, from-1), TaskName: name, Task: t, Instance: i}); err != nil {
					return nil, err
				}
			}
		}
	}
	return all, nil
}

// purged reports whether a dead letter was purged. The mark names the claim, so a task that is retried and dead-lettered
// again is listed anew.
func (g *Gateway) purged(ctx context.Context, v *runview.View, about runview.TaskRef) (bool, error) {
	var mark v1.ClaimRef
	err := g.store.GetMessage(ctx, storekey.Purged(v.Home(), v.Run.GetGeneration(), about.Name), &mark)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the dead letters of run %s: %w", v.Run.GetId(), err)
	}
	return mark.GetClaim() == about.Claim(), nil
}

// choose returns the dead letters that a request selects: those of one task or instance, or those of the whole run if name
// is "". For a fanned-out task these are the dead letters of its instances.
func (g *Gateway) choose(ctx context.Context, v *runview.View, name string) ([]runview.TaskRef, error) {
	id := v.Run.GetId()
	if name == "" {
		all, err := g.dead(ctx, v, v.Names)
		if err == nil && len(all) == 0 {
			err = rpcerror.WrongState("run %s has no dead letters", id)
		}
		return all, err
	}
	about, err := g.reader.TaskRef(ctx, v, name)
	if err != nil {
		return nil, err
	}
	if about.Instance == nil && about.Task.Task.GetCounts()[v1.TaskDeadLetter] > 0 {
		all, err := g.dead(ctx, v, []string{name})
		if err == nil && len(all) == 0 {
			err = rpcerror.WrongState("the dead letters of task %s of run %s were purged", name, id)
		}
		return all, err
	}
	if state := about.Brief().GetState(); state != v1.TaskDeadLetter {
		return nil, rpcerror.WrongState("task %s of run %s is no dead letter; it is %s", name, id, state)
	}
	purged, err := g.purged(ctx, v, about)
	if err == nil && purged {
		err = rpcerror.WrongState("the dead letter of task %s of run %s was purged", name, id)
	}
	return []runview.TaskRef{about}, err
}

// namesOf returns the names of tasks and instances.
func namesOf(subjects []runview.TaskRef) []string {
	all := make([]string, len(subjects))
	for i, about := range subjects {
		all[i] = about.Name
	}
	return all
}

// PurgeDeadLetter removes dead letters from the list for good.
func (g *Gateway) PurgeDeadLetter(ctx context.Context, req *connect.Request[v1.PurgeDeadLetterRequest]) (*connect.Response[v1.PurgeDeadLetterResponse], error) {
	id, err := g.index.Resolve(ctx, req.Msg.GetRun())
	if err != nil {
		return nil, err
	}
	v, err := g.reader.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	tasks, err := g.choose(ctx, v, req.Msg.GetTask())
	if err != nil {
		return nil, err
	}
	for _, about := range tasks {
		mark := &v1.ClaimRef{Task: about.Name, Claim: about.Claim()}
		if err := g.store.PutMessage(ctx, storekey.Purged(v.Home(), v.Run.GetGeneration(), about.Name), mark); err != nil {
			return nil, fmt.Errorf("purge the dead letter of task %s of run %s: %w", about.Name, id, err)
		}
	}
	return connect.NewResponse(&v1.PurgeDeadLetterResponse{Run: id, Tasks: namesOf(tasks)}), nil
}
