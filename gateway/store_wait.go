package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"switchyard/activities/store"
	"switchyard/gateway/rpcerror"
)

const (
	// storePatience bounds how long a call that needs the store waits for it, and for a run that keeps changing.
	storePatience = 30 * time.Second
	// storeProbeTimeout is how long a store that is not away takes at most for a value.
	storeProbeTimeout = 5 * time.Second
	// storePause is the time between two tries of a call whose store is away.
	storePause = 500 * time.Millisecond
)

// awaitStore calls f, which does what the call says, until it succeeds or fails although the store answers. A second
// call of f has the effect of one. The error of a store that stays away says what to do.
func (g *Gateway) awaitStore(ctx context.Context, what string, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	for answered := false; ; {
		err := f(ctx)
		if err == nil {
			return nil
		}
		cut := ctx.Err() != nil // err may be of that, and the store may have come back in this moment
		switch rpcerror.CodeOf(err) {
		case connect.CodeInternal, connect.CodeUnavailable, connect.CodeDeadlineExceeded:
		default:
			return err
		}
		away := g.probeStore(ctx)
		if away == nil && answered {
			return err
		}
		// The store may have come back since f failed.
		answered = away == nil
		select {
		case <-time.After(storePause):
		case <-ctx.Done():
			if away == nil && !cut || errors.Is(context.Cause(ctx), context.Canceled) {
				return err
			}
			return connect.NewError(connect.CodeUnavailable, fmt.Errorf("%s: the store did not answer within %v; try again when it does: %w", what, storePatience, cmp.Or(away, err)))
		}
	}
}

// probeStore returns why the store does not answer, or nil if it does.
func (g *Gateway) probeStore(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeProbeTimeout)
	defer cancel()
	return g.store.Probe(ctx, store.ProbeRun)
}
