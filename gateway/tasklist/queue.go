package tasklist

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/proto"

	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// MaxQueueRuns is the number of open runs that are read for the queue.
	MaxQueueRuns = 200
	// maxGroups is the number of groups of the queue that are shown.
	maxGroups = 100
	// runsAtOnce is the number of runs that are read concurrently.
	runsAtOnce = 16
	// runPatience is how long the queue waits for a run that does not answer.
	runPatience = 3 * time.Second
)

// Queue returns the waiting tasks of the requested open runs, grouped by the reason why they wait.
func (l *Lister) Queue(ctx context.Context, req *v1.GetQueueRequest) (*v1.GetQueueResponse, error) {
	q := &queue{res: &v1.GetQueueResponse{}, groups: map[string]*v1.QueueGroup{}}
	ids, err := l.openRuns(ctx, req, q)
	if err != nil {
		return nil, err
	}
	found := make([][]*taskQueue, len(ids))
	failed := make([]error, len(ids))
	var group errgroup.Group
	group.SetLimit(runsAtOnce)
	for k, id := range ids {
		group.Go(func() error {
			found[k], failed[k] = l.readQueue(ctx, id)
			return nil
		})
	}
	_ = group.Wait() // errors are kept per run
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	for k, id := range ids {
		if err := failed[k]; err != nil && rpcerror.CodeOf(err) != connect.CodeNotFound {
			q.res.Warnings = append(q.res.Warnings, fmt.Sprintf("cannot list the tasks of run %s: %v", id, err))
		}
		q.addRun(found[k])
	}
	nodes, err := l.nodes.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("list nodes: %w", err)
	}
	addFleet(q.res, nodes)
	return q.finish(), nil
}

// openRuns returns the ids of the runs to read for the queue, newest first. It adds a warning if runs are left out.
func (l *Lister) openRuns(ctx context.Context, req *v1.GetQueueRequest, q *queue) ([]string, error) {
	if req.GetRun() != "" {
		id, err := l.index.Resolve(ctx, req.GetRun())
		return []string{id}, err
	}
	filter, err := l.index.Filter(ctx, &v1.ListRunsRequest{Name: req.GetWorkflow(), Batch: req.GetBatch()})
	if err != nil {
		return nil, err
	}
	runs, err := l.index.NewestRuns(ctx, filter.Query()+runindex.AndOpen, nil, MaxQueueRuns+1, filter.Matches)
	if err != nil {
		return nil, fmt.Errorf("list the open runs: %w", err)
	}
	if len(runs) > MaxQueueRuns {
		runs = runs[:MaxQueueRuns]
		q.res.Warnings = append(q.res.Warnings, fmt.Sprintf("there are more than %d open runs; tasks of the older ones are left out", MaxQueueRuns))
	}
	var ids []string
	for _, info := range runs {
		ids = append(ids, info.GetExecution().GetWorkflowId())
	}
	return ids, nil
}

// readQueue returns the waiting tasks of a run.
func (l *Lister) readQueue(ctx context.Context, id string) ([]*taskQueue, error) {
	ctx, cancel := context.WithTimeout(ctx, runPatience)
	defer cancel()
	v, err := l.runs.Read(ctx, id)
	if err != nil || v1.IsRunTerminal(v.Run.GetState()) {
		return nil, err
	}
	var needs map[string]taskNeeds
	var waiting []*taskQueue
	for _, name := range v.Names {
		if !hasQueued(v.Tasks[name]) {
			continue
		}
		if needs == nil {
			if needs, err = l.needs.get(ctx, id); err != nil {
				return nil, err
			}
		}
		of, err := l.queueOf(ctx, v, name, needs[name], l.now())
		if err != nil {
			return waiting, err
		}
		if of != nil {
			waiting = append(waiting, of)
		}
	}
	return waiting, nil
}

// hasQueued reports whether a task or one of its instances is queued.
func hasQueued(t *runview.TaskView) bool {
	return t.Brief.GetState() == v1.TaskQueued || t.Brief.GetCounts()[v1.TaskQueued] > 0
}

// queue collects the groups of a response.
type queue struct {
	res    *v1.GetQueueResponse
	groups map[string]*v1.QueueGroup
}

// addRun adds the waiting tasks of one run. A task without a known reason is counted under the reason of other tasks of the run
// with the same demand.
func (q *queue) addRun(tasks []*taskQueue) {
	if len(tasks) > 0 {
		q.res.Runs++
	}
	said := map[string]wait{} // by demand
	for _, t := range tasks {
		for _, w := range t.waits {
			if v1.WaitsForNode(w.reason) && w.reason != v1.WaitAsking || strings.HasPrefix(w.text, quotaPrefix) {
				said[t.demandKey()] = w.wait
			}
		}
	}
	counted := map[*v1.QueueGroup]bool{} // groups that have already counted the run
	for _, t := range tasks {
		for _, w := range t.waits {
			why := w.wait
			if known, ok := said[t.demandKey()]; ok && why.reason == v1.WaitAsking {
				why = known
			}
			g := q.groupFor(t, why)
			if !counted[g] {
				counted[g] = true
				g.Runs++
			}
			g.Count += int32(w.count)
			g.Priority = max(g.Priority, t.needs.priority)
			if isEarlier(w.oldest, g.OldestQueuedAt) {
				g.OldestQueuedAt = w.oldest
			}
			if isEarlier(w.notBefore, g.NotBefore) {
				g.NotBefore = w.notBefore
			}
			g.Examples = addExamples(g.Examples, w.examples...)
		}
	}
}

// demandKey returns the demand of a task as a key.
func (t *taskQueue) demandKey() string {
	asked := &v1.QueueGroup{Type: t.view.Tasks[t.name].Task.GetType(), Demand: t.needs.demand}
	text, _ := proto.MarshalOptions{Deterministic: true}.Marshal(asked) // strings and numbers cannot fail
	return string(text)
}

// groupFor returns the group of a waiting task: by demand if the task waits for a node, otherwise by text. What nodes lack
// changes from moment to moment, so only one text of a group is shown.
func (q *queue) groupFor(t *taskQueue, why wait) *v1.QueueGroup {
	g := &v1.QueueGroup{Reason: why.reason, Text: why.text}
	key := why.reason + "\x00" + why.text
	if v1.WaitsForNode(why.reason) {
		g.Type, g.Demand = t.view.Tasks[t.name].Task.GetType(), t.needs.demand
		key = why.reason + "\x00" + t.demandKey()
	}
	if q.groups[key] == nil {
		q.groups[key] = g
	}
	return q.groups[key]
}

// finish returns the response, with the largest groups first.
func (q *queue) finish() *v1.GetQueueResponse {
	for _, g := range q.groups {
		q.res.Groups = append(q.res.Groups, g)
		q.res.Tasks += g.GetCount()
		addAsked(q.res, g)
	}
	slices.SortFunc(q.res.Groups, func(a, b *v1.QueueGroup) int {
		return cmp.Or(cmp.Compare(b.GetCount(), a.GetCount()), compareGroups(a, b))
	})
	if more := len(q.res.Groups) - maxGroups; more > 0 {
		q.res.Groups = q.res.Groups[:maxGroups]
		q.res.Warnings = append(q.res.Warnings, fmt.Sprintf("%d smaller groups are not shown; the totals include them", more))
	}
	return q.res
}

// compareGroups orders groups of equal size: the one that has waited longest comes first.
func compareGroups(a, b *v1.QueueGroup) int {
	switch {
	case isEarlier(a.GetOldestQueuedAt(), b.GetOldestQueuedAt()):
		return -1
	case isEarlier(b.GetOldestQueuedAt(), a.GetOldestQueuedAt()):
		return 1
	}
	return cmp.Or(
		cmp.Compare(a.GetReason(), b.GetReason()), cmp.Compare(a.GetType(), b.GetType()), cmp.Compare(a.GetText(), b.GetText()),
		slices.Compare(a.GetDemand().GetConstraints(), b.GetDemand().GetConstraints()), cmp.Compare(a.GetDemand().GetCores(), b.GetDemand().GetCores()),
	)
}
