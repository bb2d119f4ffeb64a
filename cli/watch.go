package cli

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// watch sends what a gateway tells of a run until the run has ended. It outlasts
// a gateway that goes away for a while; then the first message is the whole run
// again. lost is called once each time that happens.
func (a *api) watch(ctx context.Context, id string, messages chan<- *v1.WatchRunResponse, lost func(error)) error {
	return a.outlast(ctx, lost, func(alive func()) error {
		return a.watchOnce(ctx, id, func(m *v1.WatchRunResponse) error {
			alive()
			select {
			case messages <- m:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
}

func (a *api) watchOnce(ctx context.Context, id string, take func(*v1.WatchRunResponse) error) (err error) {
	stream, err := a.calls.WatchRun(ctx, connect.NewRequest(&v1.WatchRunRequest{Id: id}))
	if err != nil {
		return err
	}
	defer func() {
		// What the stream ended with has been told by Err.
		_ = stream.Close()
	}()
	for stream.Receive() {
		if stream.Msg().GetRun() == nil {
			return fmt.Errorf("the gateway sent a change of no run")
		}
		if err := take(stream.Msg()); err != nil {
			return err
		}
	}
	return stream.Err()
}
