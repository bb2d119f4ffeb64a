package client

import (
	"context"
	"fmt"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

// Watch sends the changes of a run to messages until the run has ended. If the gateway is unreachable for a while,
// Watch calls lost once and reconnects; the next message is then the whole run again.
func (a *Client) Watch(ctx context.Context, id string, messages chan<- *v1.WatchRunResponse, lost func()) error {
	return a.reconnect(ctx, lost, func(received func()) error {
		return a.watchOnce(ctx, id, func(m *v1.WatchRunResponse) error {
			received()
			select {
			case messages <- m:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
}

func (a *Client) watchOnce(ctx context.Context, id string, take func(*v1.WatchRunResponse) error) (err error) {
	stream, err := a.Runs.WatchRun(ctx, connect.NewRequest(&v1.WatchRunRequest{Id: id}))
	if err != nil {
		return err
	}
	defer func() {
		// Err has already returned the error of the stream.
		_ = stream.Close()
	}()
	for stream.Receive() {
		if stream.Msg().GetRun() == nil {
			return fmt.Errorf("the gateway sent an update without a run")
		}
		if err := take(stream.Msg()); err != nil {
			return err
		}
	}
	return stream.Err()
}
