package runstreams

import (
	"context"

	"connectrpc.com/connect"

	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

// watches sends the changes of runs.
type watches struct {
	index    *runindex.Index
	pollers  *runview.Pollers
	shutdown shutdown
}

// WatchRun sends a run in its current state, then its changes, and ends with the run.
func (w watches) WatchRun(ctx context.Context, req *connect.Request[v1.WatchRunRequest], stream *connect.ServerStream[v1.WatchRunResponse]) error {
	id, err := w.index.Resolve(ctx, req.Msg.GetId())
	if err != nil {
		return err
	}
	if err := sendHeaders(stream); err != nil {
		return err
	}
	return w.watch(ctx, id, stream.Send)
}

// watch sends a run in its current state, then its changes, and returns when the run has ended.
func (w watches) watch(ctx context.Context, id string, send func(*v1.WatchRunResponse) error) error {
	p, release := w.pollers.Watch(id)
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
			return w.shutdown.streamError(n.Err)
		}
		select {
		case <-n.Changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-w.shutdown:
			return errStopping()
		}
	}
}

// sendHeaders sends the response headers. Clients wait for them, and the first message may take long.
func sendHeaders[M any](stream *connect.ServerStream[M]) error { return stream.Send(nil) }
