package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"switchyard/activities/gatewayclient"
	"time"

	"connectrpc.com/connect"
)

const (
	// Patience is how long a gateway may be unreachable during a stream.
	Patience = time.Minute
	// The first and the longest wait before a stream is reopened.
	streamPause, maxStreamPause = 200 * time.Millisecond, 5 * time.Second
)

// AwayText returns the message for a gateway that became unreachable during a stream.
func (a *Client) AwayText() string {
	return fmt.Sprintf("lost the connection to the gateway at %s; trying to reconnect for %s", a.URL(), Patience)
}

// reconnect calls stream until it returns nil. It calls stream again if the gateway becomes unreachable after the first
// message; it returns an error from before the first message. stream calls received for each message. reconnect calls
// lost once each time the gateway becomes unreachable.
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
			return goneAway(a.URL(), fmt.Sprintf("and could not reconnect within %s", Patience))
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, maxStreamPause)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// IsAway reports whether an error means that the gateway is unreachable and may return. A gateway that dies or hangs cuts its
// last message short or resets the connection during it, which Connect reports as a protocol error.
func IsAway(err error) bool {
	switch connect.CodeOf(err) {
	case connect.CodeUnavailable, connect.CodeUnknown:
		return true
	}
	_, network := errors.AsType[*net.OpError](err)
	return network || errors.Is(err, io.ErrUnexpectedEOF) || hasHung(err)
}

// hasHung reports whether an error means that a gateway has not answered a ping.
func hasHung(err error) bool {
	// net/http does not export the error.
	return err != nil && strings.Contains(err.Error(), "http2: client connection lost")
}

// isCut reports whether an error means that the connection to a gateway ended during a call.
func isCut(err error) bool {
	if none, ok := errors.AsType[*gatewayclient.UnreachableError](err); ok {
		err = none.Reasons[len(none.Reasons)-1].Err
	}
	if network, ok := errors.AsType[*net.OpError](err); ok {
		return network.Op != "dial"
	}
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || hasHung(err)
}
