package cli

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"

	v1 "switchyard/proto/switchyard/v1"
)

const (
	// watchPatience is how long a gateway may be away in the middle of a watch.
	watchPatience = time.Minute
	// First and longest wait before a watch is taken up again.
	watchPause, maxWatchPause = 200 * time.Millisecond, 5 * time.Second
)

// watch sends what a gateway tells of a run until the run has ended. It outlasts
// a gateway that goes away for a while; then the first message is the whole run
// again. lost is called once each time that happens.
func (a *api) watch(ctx context.Context, id string, messages chan<- *v1.WatchRunResponse, lost func(error)) error {
	var lostAt time.Time // zero: not lost
	pause := watchPause
	for told := false; ; {
		err := a.watchOnce(ctx, id, func(m *v1.WatchRunResponse) error {
			told, lostAt, pause = true, time.Time{}, watchPause
			select {
			case messages <- m:
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !told || connect.CodeOf(err) != connect.CodeUnavailable && connect.CodeOf(err) != connect.CodeUnknown:
			return a.failed(err)
		case lostAt.IsZero():
			lostAt = time.Now()
			lost(err)
		case time.Since(lostAt) > watchPatience:
			return a.failed(err)
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, maxWatchPause)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
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
