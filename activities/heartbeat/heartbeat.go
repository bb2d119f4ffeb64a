package heartbeat

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

const (
	// interval is the time between two heartbeats of Keep.
	interval = 4 * time.Second
	// Timeout bounds one heartbeat of an activity without a lease, so that a silent server only delays the next one.
	Timeout = 4 * time.Second
)

// What the server answers to the heartbeat of an activity that must end.
var (
	// ErrCancelled: the server has recorded the heartbeat, and the activity is cancelled.
	ErrCancelled = errors.New("cancelled")
	// ErrGone: the server does not know the activity any more, and ignores its answer.
	ErrGone = errors.New("the server does not know the activity any more")
)

// Send sends one heartbeat with details and waits up to timeout for the server. It returns nil or ErrCancelled if the
// server has acknowledged it, ErrGone if the activity has ended for the server, and another error if it is unknown what
// the server has received, which ends nothing.
func Send(ctx context.Context, c client.Client, timeout time.Duration, token []byte, details ...any) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := c.RecordActivityHeartbeat(ctx, token, details...)
	switch {
	case errors.Is(err, activity.ErrActivityPaused), errors.Is(err, activity.ErrActivityReset):
		return nil
	case temporal.IsCanceledError(err) && ctx.Err() == nil:
		return ErrCancelled
	}
	if _, gone := errors.AsType[*serviceerror.NotFound](err); gone {
		return ErrGone
	}
	return err
}

// IsWanted sends one heartbeat and reports whether the server still waits for the answer of the activity. A server that
// does not reply counts as waiting.
func IsWanted(ctx context.Context, c client.Client, token []byte) bool {
	err := Send(ctx, c, Timeout, token)
	return err != ErrCancelled && err != ErrGone
}

// Keep sends heartbeats for the activity of ctx in the background. It returns a context that is cancelled when ctx is,
// when the server does not wait for the answer any more, or when the worker stops, and a function that ends both.
func Keep(ctx context.Context, c client.Client) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wait sync.WaitGroup
	wait.Go(func() {
		defer cancel()
		keep(ctx, c)
	})
	return ctx, func() {
		cancel()
		wait.Wait()
	}
}

func keep(ctx context.Context, c client.Client) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	token, stop := activity.GetInfo(ctx).TaskToken, activity.GetWorkerStopChannel(ctx)
	for {
		select {
		case <-ticker.C:
			if !IsWanted(ctx, c, token) {
				return
			}
		case <-ctx.Done():
			return
		case <-stop:
			return
		}
	}
}
