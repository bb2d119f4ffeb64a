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
	// serverInterval is the time between two looks whether the server answers, and serverTimeout how long one may take.
	serverInterval, serverTimeout = time.Second, 2 * time.Second
	// serverGap is the time without an answer after which the server has been away.
	serverGap = 5 * time.Second
)

// serverWatch finds out when the Temporal server was away. It is safe for concurrent use.
type serverWatch struct {
	mu sync.Mutex
	// answered is when the server has last answered; awayUntil is when it has last been away until, or zero if that
	// is not known.
	answered, awayUntil time.Time
}

// AwayUntil returns when the server has last been away until, as far as this process knows, or the zero time.
func (w *serverWatch) AwayUntil() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.awayUntil
}

// hasAnswered notes an answer of the server.
func (w *serverWatch) hasAnswered(now time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.answered.IsZero() && now.Sub(w.answered) > serverGap {
		w.awayUntil = now
	}
	w.answered = now
}

// run looks until ctx ends. It reads a workflow, which takes all parts of the server.
func (w *serverWatch) run(ctx context.Context, reg *registry.Registry) {
	for {
		callCtx, cancel := context.WithTimeout(ctx, serverTimeout)
		_, _, err := reg.Owner(callCtx)
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
