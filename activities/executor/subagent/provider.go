package subagent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"switchyard/activities/executor"
	"switchyard/activities/executor/subagent/model"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// defaultPatience bounds how long a provider may fail without interruption.
	defaultPatience = 30 * time.Minute
	// defaultFirstPause is the back-off after the first failure. It doubles up to maxPause.
	defaultFirstPause = time.Second
	maxPause          = time.Minute
	// maxRetryAfter bounds the wait that a provider may ask for.
	maxRetryAfter = 10 * time.Minute
)

// ask asks the model for a reply, and retries while the provider fails temporarily. A *giveUp ends the attempt.
func (l *loop) ask(ctx context.Context, r model.Request) (*model.Reply, error) {
	pause := l.e.firstPause
	var failing time.Time
	for {
		if l.a.Lease.Lost() {
			return nil, errLeaseLost
		}
		reply, err := l.client.Reply(ctx, r, l.output.write)
		l.output.endLine()
		if err == nil || ctx.Err() != nil {
			return reply, err
		}
		failed, ok := errors.AsType[*model.Error](err)
		switch {
		case !ok:
			return nil, err
		case failed.Status == statusNotFound:
			return nil, &giveUp{reason: v1.ReasonBadSpec, err: err}
		case !failed.IsTemporary():
			return nil, &giveUp{reason: v1.ReasonProvider, err: err}
		case failing.IsZero():
			failing = time.Now()
		}
		wait := min(max(pause/2+rand.N(pause/2+1), failed.RetryAfter), maxRetryAfter)
		pause = min(2*pause, maxPause)
		if spent := time.Since(failing); spent+wait > l.e.patience {
			return nil, &giveUp{reason: v1.ReasonProvider, err: fmt.Errorf("the provider has been failing for %v: %w", spent.Round(time.Second), err)}
		}
		l.notify(fmt.Sprintf("%v; trying again in %v", err, wait.Round(100*time.Millisecond)))
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// statusNotFound is the status with which providers reject an unknown model.
const statusNotFound = 404

// giveUp is the reason why an agent has to end without an answer.
type giveUp struct {
	reason string
	err    error
}

func (g *giveUp) Error() string { return g.err.Error() }

func (g *giveUp) failure() *executor.Failure { return &executor.Failure{Reason: g.reason, Err: g.err} }
