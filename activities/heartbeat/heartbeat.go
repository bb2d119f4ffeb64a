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
	// interval is the time between two heartbeats that Keep sends.
	interval = 4 * time.Second
	// Timeout bounds one heartbeat of an activity without a lease, so that an unresponsive server only delays the next
	// heartbeat.
	Timeout = 4 * time.Second
)

// Errors that Send returns when the activity must end.
var (
	// ErrCancelled means that the server has recorded the heartbeat and that the activity is cancelled.
	ErrCancelled = errors.New("cancelled")
	// ErrGone means that the server no longer knows the activity and will ignore its result.
	ErrGone = errors.New("the server no longer knows the activity")
)

// Send sends one heartbeat with details and waits up to timeout for the reply. It returns nil or ErrCancelled if the
// server has acknowledged the heartbeat, and ErrGone if the activity has ended for the server. After any other error it
// is unknown whether the server received the heartbeat, and the activity need not end.
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

// IsWanted sends one heartbeat and reports whether the server still waits for the result of the activity. A server that
// does not reply counts as waiting.
func IsWanted(ctx context.Context, c client.Client, token []byte) bool {
	err := Send(ctx, c, Timeout, token)
	return err != ErrCancelled && err != ErrGone
}

// Keep heartbeats the activity of ctx in the background. It returns a context that is cancelled when ctx is cancelled,
// when the server no longer waits for the result, or when the worker stops, and a function that stops the heartbeats
// and cancels that context.
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
