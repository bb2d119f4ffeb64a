package gateway

import (
	"context"
	"encoding/base64"
	"errors"

	"connectrpc.com/connect"

	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runlogs"
	v1 "switchyard/proto/switchyard/v1"
)

// ListRunLogs lists the lines that tasks have printed so far.
func (g *Gateway) ListRunLogs(ctx context.Context, req *connect.Request[v1.ListRunLogsRequest]) (*connect.Response[v1.ListRunLogsResponse], error) {
	m := req.Msg
	id, err := g.index.Resolve(ctx, m.GetId())
	if err != nil {
		return nil, err
	}
	pages, err := paging.ListOf(m)
	if err != nil {
		return nil, err
	}
	if m.GetPageToken() != "" && (m.GetTail() > 0 || m.GetChildren()) {
		return nil, rpcerror.Invalid("tail and children give one page; leave page_token out")
	}
	at, err := decodeLogPage(pages, m.GetPageToken(), id)
	if err != nil {
		return nil, err
	}
	page := runlogs.NewPage(at, int(m.GetTail()))
	err = g.sendLogs(ctx, &v1.StreamRunLogsRequest{
		Id: id, Task: m.GetTask(), Attempt: m.Attempt, Stream: m.GetStream(), Since: m.GetSince(), Generation: m.Generation,
		Children: m.GetChildren(), Resume: at,
	}, func() error { return nil }, page.Add)
	full := errors.Is(err, runlogs.ErrPageFull)
	if err != nil && !full {
		return nil, err
	}
	res := &v1.ListRunLogsResponse{}
	if full {
		if m.GetChildren() {
			return nil, rpcerror.Invalid("the logs of run %s and of the runs below it take more than one page; ask for a task, or for each run", id)
		}
		position, err := page.Position()
		if err != nil {
			return nil, err
		}
		res.NextPageToken = pages.Token(id, base64.RawURLEncoding.EncodeToString([]byte(position)))
	}
	page.Finish(full)
	res.Items, res.Missing = page.Lines, page.Missing
	return connect.NewResponse(res), nil
}

// decodeLogPage returns the positions at which a page begins, or nil for the first page.
func decodeLogPage(pages paging.List, token, run string) ([]*v1.LogPosition, error) {
	if token == "" {
		return nil, nil
	}
	of, encoded, err := pages.Place(token)
	if err != nil {
		return nil, err
	}
	if of != run {
		return nil, rpcerror.Invalid("the page token belongs to run %s", of)
	}
	text, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return nil, paging.InvalidToken()
	}
	at, err := runlogs.ParsePosition(string(text))
	if err != nil {
		return nil, paging.InvalidToken()
	}
	return at, nil
}
