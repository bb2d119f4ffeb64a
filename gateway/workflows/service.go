package workflows

import (
	"context"
	"errors"
	"slices"
	"sort"
	"strings"
	"time"

	"connectrpc.com/connect"

	"switchyard/activities/library"
	"switchyard/gateway/definitions"
	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/schedules"
	"switchyard/gateway/submission"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/definition"
)

// Library holds the stored workflows. It is safe for concurrent use. An unknown name yields library.ErrUnknown.
type Library interface {
	// Put stores a definition under its name, and reports whether it replaced another one. The error is library.ErrExists
	// or library.ErrOwned if the name is in use and may not be replaced.
	Put(ctx context.Context, def *v1.Definition, o library.PutOptions) (replaced bool, err error)
	// Get returns a stored workflow.
	Get(ctx context.Context, name string) (*library.Stored, error)
	// List returns all stored workflows, ordered by name.
	List(ctx context.Context) ([]*library.Stored, error)
	// Delete removes a stored workflow. The error is library.ErrOwned unless it has the given owner; "" is any.
	Delete(ctx context.Context, name, owner string) error
}

// Schedules holds the schedules of stored workflows. It is safe for concurrent use.
type Schedules interface {
	// Get returns a schedule.
	Get(ctx context.Context, name string) (*v1.Schedule, error)
}

// Runs starts runs. It is safe for concurrent use.
type Runs interface {
	// Submit starts a run as SubmitRun does.
	Submit(ctx context.Context, req *v1.SubmitRunRequest) (*v1.SubmitRunResponse, error)
}

// Service implements WorkflowService. It is safe for concurrent use.
type Service struct {
	Library     Library
	Definitions definitions.Checker
	Schedules   Schedules
	Runs        Runs
}

var _ switchyardv1connect.WorkflowServiceHandler = Service{}

// defaultPage is the number of stored definitions on a page if the request names no size.
const defaultPage = 100

// PutWorkflow checks a definition and stores it under its name. A definition whose runs would start one another without end is
// refused. A missing workflow that it refers to is only a warning,
// because it may be stored later.
func (s Service) PutWorkflow(ctx context.Context, req *connect.Request[v1.PutWorkflowRequest]) (*connect.Response[v1.PutWorkflowResponse], error) {
	checked, warnings, err := s.check(ctx, req.Msg.GetDefinition(), req.Msg.GetFile(), req.Msg.GetDocument())
	if err != nil {
		return nil, err
	}
	name := checked.Definition.GetName()
	if dir := checked.Definition.GetSource().GetDir(); dir != "" {
		return nil, rpcerror.Invalid("source: a stored workflow has no folder %s; drop source, and start it by `switchyard submit --workflow %s --source DIR`", dir, name)
	}
	if wanted := req.Msg.GetName(); wanted != "" && wanted != name {
		return nil, rpcerror.Invalid("the definition is named %q, not %q; change its name, or store it under that name", name, wanted)
	}
	replaced, err := s.Library.Put(ctx, checked.Definition, library.PutOptions{
		Run: s.Definitions.Defaults.FillOptions(nil), Replace: req.Msg.GetReplace() || req.Msg.GetName() != "",
		Owner: req.Msg.GetOwner(), Adopt: req.Msg.GetAdopt(),
	})
	if err != nil {
		return nil, s.Definitions.LibraryError(ctx, name, err)
	}
	res := &v1.PutWorkflowResponse{Name: name, Replaced: replaced, Warnings: warnings}
	if checked.Schedule != nil {
		if res.Schedule, err = s.Schedules.Get(ctx, name); err != nil {
			return nil, schedules.Error(name, err)
		}
	}
	return connect.NewResponse(res), nil
}

// PlanWorkflow checks a definition as PutWorkflow does, and returns it with the stored one.
func (s Service) PlanWorkflow(ctx context.Context, req *connect.Request[v1.PlanWorkflowRequest]) (*connect.Response[v1.PlanWorkflowResponse], error) {
	planned := plannedLibrary{Library: s.Library, definitions: map[string]*v1.Definition{}, deleted: req.Msg.GetDeleted()}
	for _, document := range req.Msg.GetAlongside() {
		beside, err := s.Definitions.Parse(nil, "", document)
		if err != nil {
			return nil, err
		}
		planned.definitions[beside.Definition.GetName()] = beside.Definition
	}
	then := s
	then.Definitions.Library = planned
	checked, warnings, err := then.check(ctx, nil, req.Msg.GetFile(), req.Msg.GetDocument())
	if err != nil {
		return nil, err
	}
	name := checked.Definition.GetName()
	res := &v1.PlanWorkflowResponse{Name: name, Definition: checked.Definition, Warnings: warnings}
	stored, err := s.Find(ctx, name)
	if stored == nil || err != nil {
		return connect.NewResponse(res), err
	}
	if err := (library.PutOptions{Owner: req.Msg.GetOwner(), Adopt: req.Msg.GetAdopt()}).MayReplace(name, stored.Owner); err != nil {
		return nil, s.Definitions.LibraryError(ctx, name, err)
	}
	res.Stored, res.Owner, res.Schedule = stored.Definition, stored.Owner, stored.Schedule
	return connect.NewResponse(res), nil
}

// Find returns the stored workflow of a name, or nil if no workflow has that name.
func (s Service) Find(ctx context.Context, name string) (*library.Stored, error) {
	stored, err := s.Library.Get(ctx, name)
	if errors.Is(err, library.ErrUnknown) {
		return nil, nil
	}
	return stored, s.Definitions.LibraryError(ctx, name, err)
}

// Check returns a definition as it would be stored, and warnings about it.
func (s Service) Check(ctx context.Context, def *v1.Definition) (*v1.Definition, []*v1.Problem, error) {
	checked, warnings, err := s.check(ctx, def, "", "")
	return checked.Definition, warnings, err
}

// plannedLibrary is the library as it would be after some definitions are stored and others deleted.
type plannedLibrary struct {
	definitions.Library
	definitions map[string]*v1.Definition // by name
	deleted     []string
}

// Get returns a workflow that is stored, or would be.
func (p plannedLibrary) Get(ctx context.Context, name string) (*library.Stored, error) {
	if def := p.definitions[name]; def != nil {
		return &library.Stored{Definition: def}, nil
	}
	if slices.Contains(p.deleted, name) {
		return nil, library.ErrUnknown
	}
	return p.Library.Get(ctx, name)
}

// check returns the checked definition of a request and the warnings about it.
func (s Service) check(ctx context.Context, def *v1.Definition, file, document string) (definition.Checked, []*v1.Problem, error) {
	checked, err := s.Definitions.Parse(def, file, document)
	if err != nil {
		return checked, nil, err
	}
	if err := s.Definitions.RefuseEndless(ctx, checked.Definition); err != nil {
		return checked, nil, err
	}
	others := slices.DeleteFunc(checked.Stored, func(r definition.StoredReference) bool { return r.Name == checked.Definition.GetName() })
	missing, err := s.Definitions.FindMissing(ctx, others)
	return checked, slices.Concat(checked.Warnings, missing, s.Definitions.WarnOfTargets(ctx, checked.Told)), err
}

// GetWorkflow returns a stored definition.
func (s Service) GetWorkflow(ctx context.Context, req *connect.Request[v1.GetWorkflowRequest]) (*connect.Response[v1.GetWorkflowResponse], error) {
	if err := definitions.CheckName(req.Msg.GetName()); err != nil {
		return nil, err
	}
	stored, err := s.Library.Get(ctx, req.Msg.GetName())
	if err != nil {
		return nil, s.Definitions.LibraryError(ctx, req.Msg.GetName(), err)
	}
	return connect.NewResponse(&v1.GetWorkflowResponse{Definition: stored.Definition, UpdatedAt: rfc3339(stored.UpdatedAt), Owner: stored.Owner}), nil
}

// ListWorkflows lists the stored definitions by name. The list may lag behind recent changes for a moment.
func (s Service) ListWorkflows(ctx context.Context, req *connect.Request[v1.ListWorkflowsRequest]) (*connect.Response[v1.ListWorkflowsResponse], error) {
	pages, err := paging.ListOf(req.Msg)
	if err != nil {
		return nil, err
	}
	first, err := pages.DecodeWorkflow(req.Msg.GetPageToken())
	if err != nil {
		return nil, err
	}
	all, err := s.Library.List(ctx)
	if err != nil {
		return nil, err
	}
	limit := int(req.Msg.GetPageSize())
	if limit == 0 {
		limit = defaultPage
	}
	search := strings.ToLower(req.Msg.GetSearch())
	all = slices.DeleteFunc(all, func(one *library.Stored) bool {
		return !strings.Contains(strings.ToLower(one.Definition.GetName()), search) && !strings.Contains(strings.ToLower(one.Definition.GetDescription()), search)
	})
	res := &v1.ListWorkflowsResponse{Total: int32(len(all))}
	for i, stored := range all[sort.Search(len(all), func(i int) bool { return all[i].Definition.GetName() >= first }):] {
		if i == limit {
			res.NextPageToken = pages.EncodeWorkflow(stored.Definition.GetName())
			break
		}
		res.Items = append(res.Items, &v1.StoredWorkflow{
			Name: stored.Definition.GetName(), Description: stored.Definition.GetDescription(), UpdatedAt: rfc3339(stored.UpdatedAt),
			Cron: stored.Schedule.GetCron(), Timezone: stored.Schedule.GetTimezone(), Paused: stored.Schedule.GetPaused(),
			A2A: stored.Definition.GetA2A(), Owner: stored.Owner,
		})
	}
	return connect.NewResponse(res), nil
}

// TriggerWorkflow starts a run of a stored definition.
func (s Service) TriggerWorkflow(ctx context.Context, req *connect.Request[v1.TriggerWorkflowRequest]) (*connect.Response[v1.TriggerWorkflowResponse], error) {
	m := req.Msg
	res, err := s.Runs.Submit(ctx, &v1.SubmitRunRequest{
		Source: &v1.SubmitRunRequest_Workflow{Workflow: m.GetName()}, Input: m.GetInput(), Options: m.GetOptions(),
		IdempotencyKey: m.GetIdempotencyKey(), Batch: m.GetBatch(),
	})
	if err != nil {
		return nil, err
	}
	answer := connect.NewResponse(&v1.TriggerWorkflowResponse{Id: res.GetId(), Name: res.GetName(), Existed: res.GetExisted(), Warnings: res.GetWarnings()})
	if !res.GetExisted() {
		submission.MarkCreated(answer, res.GetId())
	}
	return answer, nil
}

// DeleteWorkflow deletes a stored definition.
func (s Service) DeleteWorkflow(ctx context.Context, req *connect.Request[v1.DeleteWorkflowRequest]) (*connect.Response[v1.DeleteWorkflowResponse], error) {
	if err := definitions.CheckName(req.Msg.GetName()); err != nil {
		return nil, err
	}
	if err := s.Library.Delete(ctx, req.Msg.GetName(), req.Msg.GetOwner()); err != nil {
		return nil, s.Definitions.LibraryError(ctx, req.Msg.GetName(), err)
	}
	return connect.NewResponse(&v1.DeleteWorkflowResponse{}), nil
}

func rfc3339(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
