package vps

import (
	"context"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// runsAtOnce bounds how many runs of a page are read concurrently.
const runsAtOnce = 8

// ListVps lists machines, those of the newest run first.
func (s Service) ListVps(ctx context.Context, req *connect.Request[v1.ListVpsRequest]) (*connect.Response[v1.ListVpsResponse], error) {
	listed, err := s.Tasks.ListTasks(ctx, connect.NewRequest(&v1.ListTasksRequest{
		Type: v1.TypeVPS, State: req.Msg.GetStatus(), Node: req.Msg.GetNode(), Workflow: req.Msg.GetName(),
		PageSize: req.Msg.GetPageSize(), PageToken: req.Msg.GetPageToken(),
	}))
	if err != nil {
		return nil, err
	}
	owners, err := s.owners(ctx, listed.Msg.GetItems())
	if err != nil {
		return nil, err
	}
	res := &v1.ListVpsResponse{NextPageToken: listed.Msg.GetNextPageToken(), Warnings: listed.Msg.GetWarnings()}
	for _, item := range listed.Msg.GetItems() {
		owner := owners[item.GetRun()]
		if owner.run == nil {
			continue // the run has been deleted
		}
		m := machine{run: owner.run, name: item.GetTask(), now: item}
		if t := owner.run.GetTasks()[item.GetTask()]; t != nil {
			m.now = t
		}
		res.Items = append(res.Items, s.describe(m, owner.def))
	}
	return connect.NewResponse(res), nil
}

// owner is the run of one or more machines.
type owner struct {
	run *v1.Run // with the tasks that are machines
	def *v1.Definition
}

// owners returns the runs of machines by ID. A deleted run has an empty owner.
func (s Service) owners(ctx context.Context, items []*v1.ListedTask) (map[string]*owner, error) {
	tasks, all := map[string][]string{}, map[string]*owner{}
	for _, item := range items {
		name, _, isInstance := names.ParseInstanceName(item.GetTask())
		if !isInstance {
			name = item.GetTask()
		}
		tasks[item.GetRun()] = append(tasks[item.GetRun()], name)
		all[item.GetRun()] = &owner{}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runsAtOnce)
	for id, of := range all {
		group.Go(func() error {
			run, err := s.Runs.GetRun(ctx, connect.NewRequest(&v1.GetRunRequest{Id: id, Brief: true, Tasks: tasks[id]}))
			if err != nil {
				return ignoreNotFound(err)
			}
			def, err := s.Runs.GetRunDefinition(ctx, connect.NewRequest(&v1.GetRunDefinitionRequest{Id: id}))
			if err != nil {
				return ignoreNotFound(err)
			}
			of.run, of.def = run.Msg.GetRun(), def.Msg.GetDefinition()
			return nil
		})
	}
	return all, group.Wait()
}

// ignoreNotFound returns err, or nil if err means that the run has been deleted.
func ignoreNotFound(err error) error {
	if rpcerror.CodeOf(err) == connect.CodeNotFound {
		return nil
	}
	return err
}
