package stack

import (
	"context"
	"time"

	"switchyard/workers"
)

// connectPause is the interval before a worker tries again to connect to a Temporal that is away.
const connectPause = 3 * time.Second

// connect connects to Temporal with dial. A worker waits until ctx ends for a server that is away, and says so.
func connect(ctx context.Context, cfg Config, dial func() (*workers.Connection, error)) (*workers.Connection, error) {
	isWorker := cfg.Temporal == nil && !cfg.Control
	for problem := ""; ; {
		conn, err := dial()
		switch {
		case err == nil && problem != "":
			cfg.Logger.Info("Temporal answers")
			return conn, nil
		case err == nil || !isWorker || !workers.IsAway(err) || ctx.Err() != nil:
			return conn, err
		case err.Error() != problem:
			problem = err.Error()
			cfg.Logger.Warn("Temporal does not answer; the worker waits for it", "error", err)
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(connectPause):
		}
	}
}
