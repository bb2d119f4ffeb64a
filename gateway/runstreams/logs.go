package runstreams

import (
	"context"
	"encoding/base64"
	"errors"
	"time"

	"connectrpc.com/connect"

	"switchyard/activities/store"
	"switchyard/gateway/paging"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runlogs"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

// logs sends what tasks have printed.
type logs struct {
	index    *runindex.Index
	reader   *runview.Reader
	store    *store.Store
	pollers  *runview.Pollers
	shutdown shutdown
}

// logInterval is the shortest time between two polls of the logs of running tasks.
const logInterval = 100 * time.Millisecond

// StreamRunLogs sends what tasks have printed. Without follow it sends the current output, task by task in the order in
// which they started. With follow it then continues until the run, or the selected task, has ended.
func (l logs) StreamRunLogs(ctx context.Context, req *connect.Request[v1.StreamRunLogsRequest], stream *connect.ServerStream[v1.StreamRunLogsResponse]) error {
	id, err := l.index.Resolve(ctx, req.Msg.GetId())
	if err != nil {
		return err
	}
	req.Msg.Id = id
	if err := sendHeaders(stream); err != nil {
		return err
	}
	return l.SendLogs(ctx, req.Msg, func() error { return nil }, stream.Send)
}

// SendLogs sends the logs that a request selects. The request names its run by id. SendLogs calls accept after validating
// the request and before sending anything.
func (l logs) SendLogs(ctx context.Context, req *v1.StreamRunLogsRequest, accept func() error, send func(*v1.StreamRunLogsResponse) error) error {
	if req.GetChildren() {
		if err := runlogs.ValidateTree(req); err != nil {
			return err
		}
	}
	f := runlogs.New(req.GetId(), l.store, req, send)
	if req.GetFollow() {
		return l.followLogs(ctx, f, accept)
	}
	v, err := l.reader.Read(ctx, req.GetId())
	if err != nil {
		return err
	}
	if err := f.Validate(v); err != nil {
		return err
	}
	if err := accept(); err != nil {
		return err
	}
	if req.GetChildren() {
		return runlogs.NewTree(l.reader, l.store, req, send).Send(ctx, v)
	}
	return f.SendAll(ctx, v.Since(0))
}

// followLogs sends logs as tasks print them.
func (l logs) followLogs(ctx context.Context, f *runlogs.Follower, accept func() error) error {
	p, release := l.pollers.Watch(f.Run)
	defer release()
	for {
		start := time.Now()
		n := p.Since(f.Seen)
		if n.Done && n.Err != nil {
			return l.shutdown.streamError(n.Err)
		}
		if f.Seen == 0 && n.Version > 0 {
			if err := p.Check(f.Validate); err != nil {
				return err
			}
			if err := accept(); err != nil {
				return err
			}
		}
		var err error
		if n.Done {
			err = f.SendAll(ctx, n)
		} else if err = f.Update(ctx, n); err == nil {
			err = f.SendNew(ctx)
		}
		if err != nil || f.IsComplete() {
			return err
		}
		select {
		case <-n.Changed:
		case <-time.After(max(logInterval, 10*time.Since(start))):
		case <-ctx.Done():
			return ctx.Err()
		case <-l.shutdown:
			return errStopping()
		}
	}
}

// ListRunLogs lists the lines that tasks have printed so far.
func (l logs) ListRunLogs(ctx context.Context, req *connect.Request[v1.ListRunLogsRequest]) (*connect.Response[v1.ListRunLogsResponse], error) {
	m := req.Msg
	id, err := l.index.Resolve(ctx, m.GetId())
	if err != nil {
		return nil, err
	}
	pages, err := paging.ListOf(m)
	if err != nil {
		return nil, err
	}
	if m.GetPageToken() != "" && (m.GetTail() > 0 || m.GetChildren()) {
		return nil, rpcerror.Invalid("page_token cannot be combined with tail or children, which give a single page")
	}
	at, err := decodeLogPage(pages, m.GetPageToken(), id)
	if err != nil {
		return nil, err
	}
	page := runlogs.NewPage(at, int(m.GetTail()))
	err = l.SendLogs(ctx, &v1.StreamRunLogsRequest{
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
			return nil, rpcerror.Invalid("the logs of run %s and its child runs exceed one page; request a single task, or each run by itself", id)
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
