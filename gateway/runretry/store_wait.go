package runretry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
)

// storeWait repeats calls while the store is down.
type storeWait struct {
	// probeNow returns why the store does not answer, or nil if it does.
	probe func(ctx context.Context) error
}

const (
	// storePatience bounds how long a call waits for the store, and for a run that keeps changing.
	storePatience = 30 * time.Second
	// storeProbeTimeout bounds a probe of the store. A store that takes longer counts as down.
	storeProbeTimeout = 5 * time.Second
	// storePause is the pause between two attempts of a call while the store is down.
	storePause = 500 * time.Millisecond
)

// await calls f until f succeeds, fails twice in a row while the store answers, or storePatience has passed. f must
// be idempotent. what names the call in the error for a store that stayed down, or came back too late for another
// attempt.
func (w storeWait) await(ctx context.Context, what string, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	var last error // the newest error of a probe
	for answered := false; ; {
		err := f(ctx)
		if err == nil {
			return nil
		}
		cut := ctx.Err() != nil // err may stem from the context even though the store has just come back
		switch rpcerror.CodeOf(err) {
		case connect.CodeInternal, connect.CodeUnavailable, connect.CodeDeadlineExceeded:
		default:
			return err
		}
		away := w.probeNow(ctx)
		last = cmp.Or(away, last)
		if away == nil && answered {
			return err
		}
		// The store may have come back since f failed.
		answered = away == nil
		select {
		case <-time.After(storePause):
		case <-ctx.Done():
			if last == nil && !cut || errors.Is(context.Cause(ctx), context.Canceled) {
				return err
			}
			return connect.NewError(connect.CodeUnavailable, fmt.Errorf("%s: the store did not answer within %v; try again when it does: %w", what, storePatience, cmp.Or(last, err)))
		}
	}
}

// probeNow returns why the store does not answer, or nil if it does.
func (w storeWait) probeNow(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeProbeTimeout)
	defer cancel()
	return w.probe(ctx)
}
