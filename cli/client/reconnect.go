package client

import (
	"context"
	"errors"
	"fmt"
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

// AwayText returns what people read when the gateway has gone away in the middle of a stream.
func (a *Client) AwayText() string {
	return fmt.Sprintf("the gateway at %s has gone away; trying for %s to reach it again", a.URL, Patience)
}

// reconnect calls stream until it returns nil, and again if the gateway goes away
// in the middle. stream calls received for each message; an error before the first
// message is returned. reconnect calls lost once each time the gateway goes away.
func (a *Client) reconnect(ctx context.Context, lost func(), stream func(received func()) error) error {
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
			lost()
		case time.Since(lostSince) > Patience:
			return a.goneAway(fmt.Sprintf("and has not come back within %s", Patience))
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

// isCut reports whether an error means that the connection to a gateway has ended in the
// middle of a call.
func isCut(err error) bool {
	if network, ok := errors.AsType[*net.OpError](err); ok {
		return network.Op != "dial"
	}
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}
