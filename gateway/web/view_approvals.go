package web

import (
	"cmp"
	"context"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// approvalsPageSize is the page size for waiting tasks and runs.
	approvalsPageSize = 100
	// maxTaskPages bounds the pages that listTasks reads.
	maxTaskPages = 5
)

// approvalsView lists everything that awaits a person's decision.
type approvalsView struct {
	Waiting []approvalRow
	// More is set if there are further ones.
	More     bool
	Warnings []string
}

// approvalRow is a waiting task or run.
type approvalRow struct {
	Run, Workflow string
	Task          string // empty for a run
	Message       string
	By            string
	Since         *timestamppb.Timestamp
	// Form leads to the page of a task that asks for inputs, or may do so. It is nil for others.
	Form    *link
	Actions []Action
}

// LiveID returns the id of the block.
func (r approvalRow) LiveID() string {
	if r.Task == "" {
		return "approval-" + r.Run
	}
	return "approval-" + r.Run + "-" + r.Task
}

func openApprovals(w *Web, req request) viewSource {
	pending, owners, specs := &runHeaders{}, &runHeaders{}, &approvalSpecs{}
	return newPolledSource(func(ctx context.Context) (viewData, error) {
		tasks, runs, err := waitingApprovals(ctx, w.services)
		if err != nil {
			return viewData{}, err
		}
		runs = pending.pendingApproval(ctx, w.services, runs)
		view := approvalsView{More: tasks.GetNextPageToken() != "" || runs.GetNextPageToken() != "", Warnings: tasks.GetWarnings()}
		for _, run := range runs.GetItems() {
			row := approvalRow{
				Run: run.GetId(), Workflow: run.GetName(), By: run.GetSubmittedBy(), Since: run.GetCreatedAt(), Message: "may this run start?",
				Actions: []Action{approveRun(run, req.caller), newAction("reject-run", run.GetId(), req.caller, "run", run.GetId())},
			}
			if req.caller.Owns(run.GetSubmittedBy()) {
				forbidDecisions(row.Actions, req.caller.Name+" submitted the run; another operator must decide about it")
			}
			view.Waiting = append(view.Waiting, row)
		}
		by := owners.readHeaders(ctx, w.services, runsOf(tasks.GetItems()))
		asked := specs.read(ctx, w.services, tasks.GetItems())
		for _, t := range tasks.GetItems() {
			view.Waiting = append(view.Waiting, w.waitingTask(t, by[t.GetRun()].GetSubmittedBy(), asked[t], req.caller))
		}
		return viewData{"Approvals", "approvals", view}, nil
	})
}

// waitingTask returns the row of an approval task of a run of owner.
func (w *Web) waitingTask(t *v1.ListedTask, owner string, spec *v1.ApprovalSpec, caller *auth.Principal) approvalRow {
	row := approvalRow{Run: t.GetRun(), Workflow: t.GetWorkflow(), Task: t.GetTask(), Message: t.GetError(), By: owner, Since: sinceWhen(t)}
	forbidden := w.whyNotApprover(t.GetTask(), spec, owner, caller)
	verbs := []string{"approve-task", "reject-task"}
	if spec == nil || len(spec.GetInputs()) > 0 {
		form := newLink("Approve", taskURL(t.GetRun(), t.GetTask())+"#approve", runService+"ApproveTask", caller)
		form.Forbidden = cmp.Or(form.Forbidden, forbidden)
		row.Form, verbs = &form, verbs[1:]
	}
	for _, verb := range verbs {
		row.Actions = append(row.Actions, newAction(verb, taskOf(t.GetRun(), t.GetTask()), caller, "run", t.GetRun(), "task", t.GetTask()))
	}
	forbidDecisions(row.Actions, forbidden)
	return row
}

// sinceWhen returns when a listed task entered its state, as far as is known.
func sinceWhen(t *v1.ListedTask) *timestamppb.Timestamp {
	if t.GetStartedAt() != nil {
		return t.GetStartedAt()
	}
	return t.GetQueuedAt()
}

// runsOf returns the runs of tasks with only their IDs set.
func runsOf(tasks []*v1.ListedTask) []*v1.Run {
	runs := make([]*v1.Run, 0, len(tasks))
	for _, t := range tasks {
		runs = append(runs, &v1.Run{Id: t.GetRun()})
	}
	return runs
}

// waitingApprovals returns the approval tasks that await a decision, and the runs in the state pending_approval.
func waitingApprovals(ctx context.Context, s services) (tasks *v1.ListTasksResponse, runs *v1.ListRunsResponse, err error) {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		var err error
		tasks, err = approvalTasks(ctx, s, approvalsPageSize)
		return err
	})
	group.Go(func() error {
		res, err := s.runs.ListRuns(ctx, connect.NewRequest(&v1.ListRunsRequest{State: v1.RunPendingApproval, PageSize: approvalsPageSize}))
		if err == nil {
			runs = res.Msg
		}
		return err
	})
	return tasks, runs, group.Wait()
}

// approvalTasks returns tasks of type approval that await a decision. It reads further pages until it has `least` of them.
func approvalTasks(ctx context.Context, s services, least int) (*v1.ListTasksResponse, error) {
	return listTasks(ctx, s, &v1.ListTasksRequest{State: v1.TaskPaused, Type: v1.TypeApproval, PageSize: approvalsPageSize}, least)
}

// listTasks reads pages of tasks until it has `least` of them, up to maxTaskPages. A page covers few runs and may be empty.
func listTasks(ctx context.Context, s services, req *v1.ListTasksRequest, least int) (*v1.ListTasksResponse, error) {
	all := &v1.ListTasksResponse{}
	for range maxTaskPages {
		res, err := s.tasks.ListTasks(ctx, connect.NewRequest(req))
		if err != nil {
			return nil, err
		}
		all.Items = append(all.Items, res.Msg.GetItems()...)
		all.Warnings = append(all.Warnings, res.Msg.GetWarnings()...)
		all.NextPageToken = res.Msg.GetNextPageToken()
		if all.NextPageToken == "" || len(all.Items) >= least {
			break
		}
		req.PageToken = all.NextPageToken
	}
	return all, nil
}
