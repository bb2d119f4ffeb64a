package heartbeat

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
)

// server is a client that replies to heartbeats as a test specifies.
type server struct {
	client.Client
	answer func(ctx context.Context) error
}

func (s server) RecordActivityHeartbeat(ctx context.Context, _ []byte, _ ...any) error {
	return s.answer(ctx)
}

func TestSend(t *testing.T) {
	away := serviceerror.NewUnavailable("the server is away")
	for name, test := range map[string]struct {
		answer func(ctx context.Context) error
		want   error
		wanted bool
	}{
		"acknowledged": {func(context.Context) error { return nil }, nil, true},
		"cancelled":    {func(context.Context) error { return temporal.NewCanceledError() }, ErrCancelled, false},
		"unknown":      {func(context.Context) error { return serviceerror.NewNotFound("no such activity") }, ErrGone, false},
		"paused":       {func(context.Context) error { return activity.ErrActivityPaused }, nil, true},
		"reset":        {func(context.Context) error { return activity.ErrActivityReset }, nil, true},
		"away":         {func(context.Context) error { return away }, away, true},
		"silent": {func(ctx context.Context) error {
			<-ctx.Done()
			return temporal.NewCanceledError() // the SDK reports its own deadline in this way
		}, nil, true},
	} {
		// In a bubble, a busy machine lets no time-out pass.
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				timeout := time.Minute
				if name == "silent" {
					timeout = time.Millisecond
				}
				err := Send(t.Context(), server{answer: test.answer}, timeout, nil)
				if name == "silent" {
					if err == nil || errors.Is(err, ErrCancelled) || errors.Is(err, ErrGone) {
						t.Errorf("error %v of a server that does not answer", err)
					}
					return
				}
				if !errors.Is(err, test.want) {
					t.Errorf("error %v, want %v", err, test.want)
				}
				if got := IsWanted(t.Context(), server{answer: test.answer}, nil); got != test.wanted {
					t.Errorf("wanted %v, want %v", got, test.wanted)
				}
			})
		})
	}
}
