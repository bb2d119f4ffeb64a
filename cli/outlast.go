package cli

import (
	"context"
	"errors"
	"io"
	"time"

	"connectrpc.com/connect"
)

const (
	// streamPatience is how long a gateway may be away in the middle of a stream.
	streamPatience = time.Minute
	// First and longest wait before a stream is taken up again.
	streamPause, maxStreamPause = 200 * time.Millisecond, 5 * time.Second
)

// outlast calls stream until it has come to its end, and again when the gateway
// goes away in the middle. stream calls alive for each message; before the first
// one every error ends it. lost is called once each time the gateway goes away.
func (a *api) outlast(ctx context.Context, lost func(error), stream func(alive func()) error) error {
	var lostAt time.Time // zero: not lost
	pause := streamPause
	for begun := false; ; {
		err := stream(func() { begun, lostAt, pause = true, time.Time{}, streamPause })
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !begun || !isAway(err):
			return a.failed(err)
		case lostAt.IsZero():
			lostAt = time.Now()
			lost(err)
		case time.Since(lostAt) > streamPatience:
			return a.failed(err)
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, maxStreamPause)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// isAway reports whether an error says that the gateway has gone away, and may
// come back. One that dies cuts its last message short.
func isAway(err error) bool {
	code := connect.CodeOf(err)
	return code == connect.CodeUnavailable || code == connect.CodeUnknown || errors.Is(err, io.ErrUnexpectedEOF)
}
