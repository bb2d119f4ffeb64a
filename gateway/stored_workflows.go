package gateway

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/library"
	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/definition"
	"switchyard/workflows/definition/source"
	"switchyard/workflows/nearest"
)

// defaultStoredPage is the number of stored definitions on a page if the request names no size.
const defaultStoredPage = 100

// workflowNameText matches valid workflow names.
var workflowNameText = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`) })

// checkWorkflowName returns an error for an invalid workflow name.
func checkWorkflowName(name string) error {
	if !workflowNameText().MatchString(name) {
		return rpcerror.Invalid("%.80q is no workflow name; those are at most 63 of [A-Za-z0-9._-] and begin with a letter or a digit", name)
	}
	return nil
}

// workflowService implements WorkflowService.
type workflowService struct{ *Gateway }

var _ switchyardv1connect.WorkflowServiceHandler = workflowService{}

// PutWorkflow checks a definition and stores it under its name. A missing workflow that it refers to is only a warning,
// because it may be stored later.
func (s workflowService) PutWorkflow(ctx context.Context, req *connect.Request[v1.PutWorkflowRequest]) (*connect.Response[v1.PutWorkflowResponse], error) {
	checked, err := s.definitionOf(req.Msg.GetDefinition(), req.Msg.GetFile(), req.Msg.GetDocument())
	if err != nil {
		return nil, err
	}
	name := checked.Definition.GetName()
	if wanted := req.Msg.GetName(); wanted != "" && wanted != name {
		return nil, rpcerror.Invalid("the definition is named %q, not %q; change its name, or store it under its own", name, wanted)
	}
	others := slices.DeleteFunc(checked.Stored, func(r definition.StoredReference) bool { return r.Name == name })
	missing, err := s.missingWorkflows(ctx, others)
	if err != nil {
		return nil, err
	}
	replaced, err := s.library.Put(ctx, checked.Definition, s.config.Defaults.FillOptions(nil), req.Msg.GetReplace() || req.Msg.GetName() != "")
	if err != nil {
		return nil, s.libraryError(ctx, name, err)
	}
	res := &v1.PutWorkflowResponse{Name: name, Replaced: replaced, Warnings: slices.Concat(checked.Warnings, missing)}
	if checked.Schedule != nil {
		if res.Schedule, err = s.times.Get(ctx, name); err != nil {
			return nil, scheduleError(name, err)
		}
	}
	return connect.NewResponse(res), nil
}

// GetWorkflow returns a stored definition.
func (s workflowService) GetWorkflow(ctx context.Context, req *connect.Request[v1.GetWorkflowRequest]) (*connect.Response[v1.GetWorkflowResponse], error) {
	if err := checkWorkflowName(req.Msg.GetName()); err != nil {
		return nil, err
	}
	stored, err := s.library.Get(ctx, req.Msg.GetName())
	if err != nil {
		return nil, s.libraryError(ctx, req.Msg.GetName(), err)
	}
	return connect.NewResponse(&v1.GetWorkflowResponse{Definition: stored.Definition, UpdatedAt: rfc3339(stored.UpdatedAt)}), nil
}

// ListWorkflows lists the stored definitions by name. The list may lag behind recent changes for a moment.
func (s workflowService) ListWorkflows(ctx context.Context, req *connect.Request[v1.ListWorkflowsRequest]) (*connect.Response[v1.ListWorkflowsResponse], error) {
	pages, err := paging.ListOf(req.Msg)
	if err != nil {
		return nil, err
	}
	first, err := pages.DecodeWorkflow(req.Msg.GetPageToken())
	if err != nil {
		return nil, err
	}
	all, err := s.library.List(ctx)
	if err != nil {
		return nil, err
	}
	limit := int(req.Msg.GetPageSize())
	if limit == 0 {
		limit = defaultStoredPage
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
			A2A: stored.Definition.GetA2A(),
		})
	}
	return connect.NewResponse(res), nil
}

// TriggerWorkflow starts a run of a stored definition.
func (s workflowService) TriggerWorkflow(ctx context.Context, req *connect.Request[v1.TriggerWorkflowRequest]) (*connect.Response[v1.TriggerWorkflowResponse], error) {
	m := req.Msg
	res, err := s.submit(ctx, &v1.SubmitRunRequest{
		Source: &v1.SubmitRunRequest_Workflow{Workflow: m.GetName()}, Input: m.GetInput(), Options: m.GetOptions(),
		IdempotencyKey: m.GetIdempotencyKey(), Batch: m.GetBatch(),
	})
	if err != nil {
		return nil, err
	}
	answer := connect.NewResponse(&v1.TriggerWorkflowResponse{Id: res.GetId(), Name: res.GetName(), Existed: res.GetExisted(), Warnings: res.GetWarnings()})
	if !res.GetExisted() {
		markCreated(answer, res.GetId())
	}
	return answer, nil
}

// DeleteWorkflow deletes a stored definition.
func (s workflowService) DeleteWorkflow(ctx context.Context, req *connect.Request[v1.DeleteWorkflowRequest]) (*connect.Response[v1.DeleteWorkflowResponse], error) {
	if err := checkWorkflowName(req.Msg.GetName()); err != nil {
		return nil, err
	}
	if err := s.library.Delete(ctx, req.Msg.GetName()); err != nil {
		return nil, s.libraryError(ctx, req.Msg.GetName(), err)
	}
	return connect.NewResponse(&v1.DeleteWorkflowResponse{}), nil
}

// maxStoredChecks bounds the number of stored workflows that one request looks up. A task that names a missing workflow
// beyond it fails when it runs.
const maxStoredChecks = 200

// missingWorkflows returns a problem for each reference to a workflow that is not stored.
func (g *Gateway) missingWorkflows(ctx context.Context, places []definition.StoredReference) (source.Problems, error) {
	var missing source.Problems
	var stored []string
	known := map[string]bool{}
	for _, place := range places {
		is, looked := known[place.Name]
		if !looked && len(known) == maxStoredChecks {
			continue
		}
		if !looked {
			_, err := g.library.Get(ctx, place.Name)
			if err != nil && !errors.Is(err, library.ErrUnknown) {
				return nil, err
			}
			is = err == nil
			known[place.Name] = is
		}
		if is {
			continue
		}
		if len(missing) == 0 {
			stored = g.storedNames(ctx)
		}
		problem := proto.CloneOf(place.Place)
		problem.Message = "no workflow is stored under the name " + source.Quote(place.Name)
		if problem.Hint = nearest.DidYouMean(place.Name, stored); problem.Hint == "" {
			problem.Hint = "`switchyard workflows put FILE` stores one, `switchyard workflows list` shows those that are"
		}
		missing = append(missing, problem)
	}
	return missing, nil
}

// storedNames returns the names of stored workflows for a hint, or nil if they cannot be listed.
func (g *Gateway) storedNames(ctx context.Context) (names []string) {
	all, err := g.library.List(ctx)
	if err != nil {
		return nil
	}
	for _, one := range all {
		names = append(names, one.Definition.GetName())
	}
	return names
}

// libraryError maps an error of the library about a name to the one that clients see. For an unknown name it suggests a
// similar one.
func (g *Gateway) libraryError(ctx context.Context, name string, err error) error {
	switch {
	case errors.Is(err, library.ErrUnknown):
		return rpcerror.Missing("workflow", name, nearest.DidYouMean(name, g.storedNames(ctx)))
	case errors.Is(err, library.ErrExists):
		return connect.NewError(connect.CodeAlreadyExists, errors.New("workflow "+name+" is stored already; ask for it to be replaced"))
	case errors.Is(err, library.ErrTooLarge):
		return connect.NewError(connect.CodeInvalidArgument, err)
	}
	return err
}

func rfc3339(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
