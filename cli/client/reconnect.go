package client

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"connectrpc.com/connect"
)

const (
	// Patience is how long a gateway may be away in the middle of a stream.
	Patience = time.Minute
	// First and longest wait before a stream is opened again.
	streamPause, maxStreamPause = 200 * time.Millisecond, 5 * time.Second
)

// reconnect calls stream until it returns nil, and again if the gateway goes away
// in the middle. stream calls received for each message; an error before the first
// message is returned. reconnect calls lost once each time the gateway goes away.
func (a *Client) reconnect(ctx context.Context, lost func(error), stream func(received func()) error) error {
	var lostSince time.Time // zero while the gateway answers
	pause := streamPause
	for begun := false; ; {
		err := stream(func() { begun, lostSince, pause = true, time.Time{}, streamPause })
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case !begun || !IsAway(err):
			return a.Failure(err)
		case lostSince.IsZero():
			lostSince = time.Now()
			lost(err)
		case time.Since(lostSince) > Patience:
			return a.Failure(err)
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, maxStreamPause)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// IsAway reports whether an error means that the gateway has gone away, and may come back. A gateway that dies cuts its
// last message short, or resets the connection in the middle of it, which Connect takes for a broken protocol.
func IsAway(err error) bool {
	switch connect.CodeOf(err) {
	case connect.CodeUnavailable, connect.CodeUnknown:
		return true
	}
	_, network := errors.AsType[*net.OpError](err)
	return network || errors.Is(err, io.ErrUnexpectedEOF)
}
