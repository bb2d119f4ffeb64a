package web

import (
	"context"
	"time"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// failureWindow is the period for which the overview reports failures.
	failureWindow = 24 * time.Hour
	// overviewItems bounds each list of the overview.
	overviewItems = 10
	// fleetNodes bounds the nodes that the overview names.
	fleetNodes = 12
	// overviewSchedules bounds the schedules that the overview reads individually.
	overviewSchedules = 20
)

// Indices of the parts of the overview.
const (
	partFailures = iota
	partRunning
	partNewest
	partDeadLetters
	partApprovals
	partApprovalRuns
	partQueue
	partNodes
	partLost
	partSchedules
	overviewParts
)

// overviewView is the data of the overview page.
type overviewView struct {
	Attention []attention
	// IsKnown reports whether all parts have been read.
	IsKnown bool
	Fleet   *fleet // nil if unknown
	Totals  []stateTab
	Running []runLine
	Newest  []runLine
	// RunningFailed and NewestFailed are why the runs are unknown, or "".
	RunningFailed, NewestFailed string
	Late                        []*v1.Schedule
}

// runLine is a run in one of the overview's lists.
type runLine struct {
	*v1.Run
	list string
}

// LiveID returns the id of the block.
func (r runLine) LiveID() string { return r.list + "-" + r.GetId() }

func runLines(list string, p loadedPart) []runLine {
	var lines []runLine
	if res, ok := p.data.(*v1.ListRunsResponse); ok {
		for _, run := range res.GetItems() {
			lines = append(lines, runLine{run, list})
		}
	}
	return lines
}

func openOverview(w *Web, req request) viewSource {
	runs := func(ctx context.Context, request *v1.ListRunsRequest) (any, error) {
		res, err := w.services.runs.ListRuns(ctx, connect.NewRequest(request))
		if err != nil {
			return nil, err
		}
		return res.Msg, nil
	}
	failed, pending := &runHeaders{}, &runHeaders{}
	parts := make([]part, overviewParts)
	parts[partFailures] = part{time.Second, func(ctx context.Context) (any, error) {
		res, err := w.services.runs.ListRuns(ctx, connect.NewRequest(failedRunsRequest(w.Now())))
		if err != nil {
			return nil, err
		}
		return failed.withErrors(ctx, w.services, res.Msg, maxAttentionLines), nil
	}}
	parts[partRunning] = part{pollInterval, func(ctx context.Context) (any, error) {
		return runs(ctx, &v1.ListRunsRequest{State: v1.RunRunning, PageSize: overviewItems})
	}}
	parts[partNewest] = part{pollInterval, func(ctx context.Context) (any, error) {
		return runs(ctx, &v1.ListRunsRequest{PageSize: overviewItems, Totals: true})
	}}
	parts[partDeadLetters] = part{2 * time.Second, func(ctx context.Context) (any, error) {
		res, err := w.services.runs.ListDeadLetters(ctx, connect.NewRequest(&v1.ListDeadLettersRequest{PageSize: overviewItems}))
		if err != nil {
			return nil, err
		}
		return res.Msg, nil
	}}
	parts[partApprovals] = part{time.Second, func(ctx context.Context) (any, error) { return approvalTasks(ctx, w.services, overviewItems) }}
	parts[partApprovalRuns] = part{time.Second, func(ctx context.Context) (any, error) {
		res, err := w.services.runs.ListRuns(ctx, connect.NewRequest(&v1.ListRunsRequest{State: v1.RunPendingApproval, PageSize: maxHeaders}))
		if err != nil {
			return nil, err
		}
		return pending.pendingApproval(ctx, w.services, res.Msg), nil
	}}
	parts[partQueue] = part{time.Second, func(ctx context.Context) (any, error) {
		res, err := w.services.tasks.GetQueue(ctx, connect.NewRequest(&v1.GetQueueRequest{}))
		if err != nil {
			return nil, err
		}
		return res.Msg, nil
	}}
	parts[partNodes] = part{pollInterval, func(ctx context.Context) (any, error) {
		res, err := w.services.nodes.ListNodes(ctx, connect.NewRequest(&v1.ListNodesRequest{PageSize: maxListedNodes}))
		if err != nil {
			return nil, err
		}
		return res.Msg, nil
	}}
	parts[partLost] = part{2 * time.Second, func(ctx context.Context) (any, error) { return lostTasks(ctx, w.services, w.Now()) }}
	parts[partSchedules] = part{5 * time.Second, func(ctx context.Context) (any, error) { return listSchedules(ctx, w.services) }}
	return newPartsSource(newOverview, parts...)
}

// failedRunsRequest returns the request for recently failed runs. Its start time is truncated to minutes so that it rarely
// changes.
func failedRunsRequest(now time.Time) *v1.ListRunsRequest {
	since, _ := parseSince(failureWindow.String(), now.Truncate(time.Minute)) // the text is a valid duration
	return &v1.ListRunsRequest{State: v1.RunFailed, Since: since, PageSize: overviewItems, Totals: true}
}

// lostTasks returns the tasks that are lost until their nodes return, and those that were lost recently for good.
func lostTasks(ctx context.Context, s services, now time.Time) (*v1.ListTasksResponse, error) {
	res, err := s.tasks.ListTasks(ctx, connect.NewRequest(&v1.ListTasksRequest{State: v1.TaskLost, PageSize: approvalsPageSize}))
	if err != nil {
		return nil, err
	}
	lost := &v1.ListTasksResponse{NextPageToken: res.Msg.GetNextPageToken()}
	for _, t := range res.Msg.GetItems() {
		if t.GetCompletedAt() == nil || t.GetCompletedAt().AsTime().After(now.Add(-failureWindow)) {
			lost.Items = append(lost.Items, t)
		}
	}
	return lost, nil
}

// listSchedules returns the schedules, the first overviewSchedules of them with the fields that lists leave out, such as the
// number of missed starts.
func listSchedules(ctx context.Context, s services) ([]*v1.Schedule, error) {
	res, err := s.schedules.ListSchedules(ctx, connect.NewRequest(&v1.ListSchedulesRequest{}))
	if err != nil {
		return nil, err
	}
	schedules := res.Msg.GetItems()
	for i, schedule := range schedules[:min(len(schedules), overviewSchedules)] {
		got, err := s.schedules.GetSchedule(ctx, connect.NewRequest(&v1.GetScheduleRequest{Name: schedule.GetName()}))
		if err != nil {
			continue // deleted meanwhile, or shown without the extra fields
		}
		schedules[i] = got.Msg.GetSchedule()
	}
	return schedules, nil
}

// newOverview builds the overview from its loaded parts.
func newOverview(loaded []loadedPart) viewData {
	view := overviewView{IsKnown: true, Attention: attentions(loaded)}
	for _, p := range loaded {
		view.IsKnown = view.IsKnown && p.isLoaded
	}
	if nodes, ok := loaded[partNodes].data.(*v1.ListNodesResponse); ok {
		view.Fleet = newFleet(nodes)
	}
	view.Running, view.RunningFailed = runLines(v1.RunRunning, loaded[partRunning]), loaded[partRunning].failure()
	view.Newest, view.NewestFailed = runLines("newest", loaded[partNewest]), loaded[partNewest].failure()
	if res, ok := loaded[partNewest].data.(*v1.ListRunsResponse); ok {
		for _, state := range v1.RunStates() {
			if n := res.GetTotals()[state]; n > 0 {
				view.Totals = append(view.Totals, stateTab{State: state, URL: withParameter("/ui/runs", "state", state), Count: n})
			}
		}
	}
	if schedules, ok := loaded[partSchedules].data.([]*v1.Schedule); ok {
		for _, s := range schedules {
			if s.GetMissed()+s.GetSkipped()+s.GetDropped() > 0 {
				view.Late = append(view.Late, s)
			}
		}
	}
	return viewData{"Overview", "overview", view}
}

// fleet summarises the nodes.
type fleet struct {
	States  []stateTab
	Amounts []amount
	// Nodes are the first nodes by name, More is the number of others.
	Nodes []*v1.Node
	More  int
}

func newFleet(res *v1.ListNodesResponse) *fleet {
	nodes := res.GetItems()
	f := &fleet{Nodes: nodes[:min(len(nodes), fleetNodes)]}
	f.More = len(nodes) - len(f.Nodes)
	byState := map[string]int32{}
	sums := map[string]amount{}
	for _, n := range nodes {
		byState[n.GetState()]++
		if n.GetState() == v1.NodeOffline {
			continue
		}
		for _, a := range nodeAmounts(n) {
			sum := sums[a.Name]
			sum.Name, sum.Unit = a.Name, a.Unit
			sums[a.Name] = sum.add(a)
		}
	}
	for _, state := range v1.NodeStates() {
		if byState[state] > 0 {
			f.States = append(f.States, stateTab{State: state, URL: withParameter("/ui/nodes", "state", state), Count: byState[state]})
		}
	}
	for _, name := range []string{"tasks", "cores", "memory", "GPUs"} {
		if sum, ok := sums[name]; ok {
			f.Amounts = append(f.Amounts, sum)
		}
	}
	return f
}
