package runretry

import (
	"context"
	"fmt"
	"time"

	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runview"
)

// reopenPause is the pause before another attempt to reopen a run that has changed in the meantime.
const reopenPause = 200 * time.Millisecond

// settledReader reads runs that are not between two executions. It is safe for concurrent use.
type settledReader interface {
	// ReadSettled returns the newest execution of a run and its view.
	ReadSettled(ctx context.Context, id string) (*runview.Description, *runview.View, error)
}

// retryWhileChanging calls try with a settled run, and again with its newest state if the run ends or is reopened meanwhile.
// try returns what it attempted, for the error, or "" if its error is final.
func retryWhileChanging(ctx context.Context, reader settledReader, id string,
	try func(desc *runview.Description, v *runview.View) (what string, err error)) error {
	for {
		desc, v, err := reader.ReadSettled(ctx, id)
		if err != nil {
			return err
		}
		what, err := try(desc, v)
		if err == nil || what == "" {
			return err
		}
		if code := rpcerror.CodeOf(err); code != connect.CodeNotFound && code != connect.CodeAlreadyExists {
			return fmt.Errorf("%s: %w", what, err)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		case <-time.After(reopenPause):
		}
	}
}
