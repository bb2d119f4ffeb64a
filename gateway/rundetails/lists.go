package rundetails

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	"switchyard/gateway/definitions"
	"switchyard/gateway/paging"
	"switchyard/gateway/runevents"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

// lists lists runs and their events.
type lists struct {
	index  *runindex.Index
	reader *runview.Reader
	events *runevents.Reader
}

// defaultRunPage is the number of runs on a page if the request names no size.
const defaultRunPage = 100

// ListRuns lists runs, newest first.
func (l lists) ListRuns(ctx context.Context, req *connect.Request[v1.ListRunsRequest]) (*connect.Response[v1.ListRunsResponse], error) {
	pages, err := paging.ListOf(req.Msg)
	if err != nil {
		return nil, err
	}
	after, err := pages.DecodeRun(req.Msg.GetPageToken())
	if err != nil {
		return nil, err
	}
	if name := req.Msg.GetName(); name != "" {
		if err := definitions.CheckName(name); err != nil {
			return nil, err
		}
	}
	filter, err := l.index.Filter(ctx, req.Msg)
	if err != nil {
		return nil, err
	}
	limit := int(req.Msg.GetPageSize())
	if limit == 0 {
		limit = defaultRunPage
	}
	found, err := l.index.NewestRuns(ctx, filter.Query(), after, limit+1, filter.Matches)
	if err != nil {
		return nil, fmt.Errorf("list runs: %w", err)
	}
	res := &v1.ListRunsResponse{}
	for i, info := range found {
		if i == limit {
			res.NextPageToken = pages.EncodeRun(paging.PositionOf(found[i-1]))
			break
		}
		res.Items = append(res.Items, runview.ListedRun(info))
	}
	if err := l.count(ctx, filter, res); err != nil {
		return nil, err
	}
	l.reader.ListPartProblems(ctx, res.Items)
	return connect.NewResponse(res), nil
}

// count sets the totals of a page, if the request asks for them, and its total, where it is known or the page is the first.
func (l lists) count(ctx context.Context, filter runindex.RunFilter, res *v1.ListRunsResponse) (err error) {
	total := int32(len(res.GetItems()))
	switch {
	case filter.GetTotals():
		if res.Totals, err = l.index.Totals(ctx, filter); err != nil {
			return err
		}
		total = 0
		for state, n := range res.GetTotals() {
			if filter.GetState() == "" || state == filter.GetState() {
				total += n
			}
		}
	case filter.GetPageToken() != "":
		return nil
	case res.GetNextPageToken() != "":
		if total, err = l.index.Total(ctx, filter); err != nil {
			return err
		}
	}
	res.Total = &total
	return nil
}

// GetRunDefinition returns the definition that a run was started with.
func (l lists) GetRunDefinition(ctx context.Context, req *connect.Request[v1.GetRunDefinitionRequest]) (*connect.Response[v1.GetRunDefinitionResponse], error) {
	id, err := l.index.Resolve(ctx, req.Msg.GetId())
	if err != nil {
		return nil, err
	}
	desc, err := l.reader.Describe(ctx, id)
	if err != nil {
		return nil, err
	}
	in, err := l.reader.DefinedInput(ctx, desc.GetWorkflowExecutionInfo())
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(&v1.GetRunDefinitionResponse{Id: id, Definition: in.GetDefinition()}), nil
}

// ListRunEvents lists the events of the tasks of one run over all its generations, or those of all runs. The
// workflow holds the newest events, the store the others. The workflow learns of the start of an attempt only
// when the attempt ends. Until then the start comes from the heartbeat, and is on the last page of the run.
func (l lists) ListRunEvents(ctx context.Context, req *connect.Request[v1.ListRunEventsRequest]) (*connect.Response[v1.ListRunEventsResponse], error) {
	res, err := l.events.List(ctx, req.Msg)
	if err != nil {
		return nil, err
	}
	return connect.NewResponse(res), nil
}
