package gateway

import (
	"context"
	"time"

	"connectrpc.com/connect"

	"switchyard/gateway/runlogs"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

// logInterval is the shortest time between two polls of the logs of running tasks.
const logInterval = 100 * time.Millisecond

// StreamRunLogs sends what tasks have printed. Without follow it sends the current output, task by task in the order in
// which they started. With follow it then continues until the run, or the selected task, has ended.
func (g *Gateway) StreamRunLogs(ctx context.Context, req *connect.Request[v1.StreamRunLogsRequest], stream *connect.ServerStream[v1.StreamRunLogsResponse]) error {
	id, err := g.index.Resolve(ctx, req.Msg.GetId())
	if err != nil {
		return err
	}
	req.Msg.Id = id
	if err := sendHeaders(stream); err != nil {
		return err
	}
	return g.sendLogs(ctx, req.Msg, func() error { return nil }, stream.Send)
}

// sendLogs sends the logs that a request selects. The request names its run by id. sendLogs calls accept after validating
// the request and before sending anything.
func (g *Gateway) sendLogs(ctx context.Context, req *v1.StreamRunLogsRequest, accept func() error, send func(*v1.StreamRunLogsResponse) error) error {
	if req.GetChildren() {
		if err := runlogs.ValidateTree(req); err != nil {
			return err
		}
	}
	f := runlogs.New(req.GetId(), g.store, req, send)
	if req.GetFollow() {
		return g.followLogs(ctx, f, accept)
	}
	v, err := g.reader.Read(ctx, req.GetId())
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
		return runlogs.NewTree(g.reader, g.store, req, send).Send(ctx, v)
	}
	return f.SendAll(ctx, v.Since(0))
}

// followLogs sends logs as tasks print them.
func (g *Gateway) followLogs(ctx context.Context, f *runlogs.Follower, accept func() error) error {
	p, release := g.pollers.Watch(f.Run)
	defer release()
	for {
		start := time.Now()
		n := p.Since(f.Seen)
		if n.Done && n.Err != nil {
			return g.ended(n.Err)
		}
		if f.Seen == 0 && n.Version > 0 {
			if err := p.Check(f.Validate); err != nil {
				return err
			}
			if err := accept(); err != nil {
				return err
			}
		}
		if n.Done {
			return f.SendAll(ctx, n)
		}
		if err := f.Update(ctx, n); err != nil {
			return err
		}
		if err := f.SendNew(ctx); err != nil {
			return err
		}
		if f.IsComplete() {
			return f.SendAllMissing()
		}
		select {
		case <-n.Changed:
		case <-time.After(max(logInterval, 10*time.Since(start))):
		case <-ctx.Done():
			return ctx.Err()
		case <-g.stopping:
			return errStopping()
		}
	}
}

// WatchRun sends a run in its current state, then its changes, and ends with the run.
func (g *Gateway) WatchRun(ctx context.Context, req *connect.Request[v1.WatchRunRequest], stream *connect.ServerStream[v1.WatchRunResponse]) error {
	id, err := g.index.Resolve(ctx, req.Msg.GetId())
	if err != nil {
		return err
	}
	if err := sendHeaders(stream); err != nil {
		return err
	}
	return g.watch(ctx, id, stream.Send)
}

// watch sends a run in its current state, then its changes, and returns when the run has ended.
func (g *Gateway) watch(ctx context.Context, id string, send func(*v1.WatchRunResponse) error) error {
	p, release := g.pollers.Watch(id)
	defer release()
	var seen int64
	for {
		n := p.Since(seen)
		if n.Version > seen {
			for _, m := range runview.Messages(n) {
				if err := send(m); err != nil {
					return err
				}
			}
			seen = n.Version
		}
		if n.Done {
			return g.ended(n.Err)
		}
		select {
		case <-n.Changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-g.stopping:
			return errStopping()
		}
	}
}

// sendHeaders sends the response headers. Clients wait for them, and the first message may take long.
func sendHeaders[M any](stream *connect.ServerStream[M]) error { return stream.Send(nil) }

// ended returns the error of a stream that ended with err: Unavailable if the gateway is shutting down.
func (g *Gateway) ended(err error) error {
	select {
	case <-g.stopping:
		return errStopping()
	default:
		return err
	}
}
