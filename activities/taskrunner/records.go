package taskrunner

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"switchyard/activities/store"
)

// records reads and writes what the attempts of a node leave in the store: their results and checkpoints. It waits while
// the store is away. It is safe for concurrent use.
type records struct {
	store   *store.Store
	timeout time.Duration // of a write that the attempt can do without
	logger  *slog.Logger
}

// records returns the records of attempts in the node's store.
func (n *Node) records() records { return records{n.Store, n.Timing.recordTimeout(), n.Logger} }

// insist calls f until it succeeds, until ctx ends, or until it keeps failing although the store responds. It does not
// retry if the store has no such value or cannot read it.
func (r records) insist(ctx context.Context, f func() error) error {
	for try, pause := 1, firstReadPause; ; pause = min(2*pause, lastReadPause) {
		err := f()
		_, isFull := errors.AsType[*store.ArtifactQuotaError](err)
		if err == nil || isFull || errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrUnreadable) || ctx.Err() != nil {
			return err
		}
		if r.store.Probe(ctx, store.ProbeRun) == nil {
			if try++; try > store.Tries {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pause):
		}
	}
}
