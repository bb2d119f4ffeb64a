package workers

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"

	"switchyard/activities/registry"
)

const (
	// serverInterval is the interval between two probes of the server, and serverTimeout bounds one of them.
	serverInterval, serverTimeout = time.Second, 2 * time.Second
	// serverGap is the time without a reply after which the server counts as having been unavailable.
	serverGap = 5 * time.Second
)

// serverWatch records when the Temporal server was unavailable. It is safe for concurrent use.
type serverWatch struct {
	mu sync.Mutex
	// answered is the time of the server's last reply. awayUntil is the end of its last outage, or zero if none is
	// known.
	answered, awayUntil time.Time
}

// AwayUntil returns the end of the server's last outage, or the zero time if this process knows of none.
func (w *serverWatch) AwayUntil() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.awayUntil
}

// hasAnswered records a reply of the server.
func (w *serverWatch) hasAnswered(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.answered.IsZero() && now.Sub(w.answered) > serverGap {
		w.awayUntil = now
	}
	w.answered = now
}

// run probes the server until ctx ends. A probe reads a workflow, which involves all parts of the server.
func (w *serverWatch) run(ctx context.Context, reg *registry.Registry) {
	for {
		callCtx, cancel := context.WithTimeout(ctx, serverTimeout)
		_, _, err := reg.Leader(callCtx)
		cancel()
		if _, unknown := errors.AsType[*serviceerror.NotFound](err); err == nil || unknown {
			w.hasAnswered(time.Now())
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(serverInterval):
		}
	}
}
