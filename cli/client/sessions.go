package client

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"connectrpc.com/connect"

	"switchyard/activities/sessions/wire"
	"switchyard/cli/exit"
	"switchyard/drawing/words"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// sessionsPath is the path at which a gateway accepts sessions.
const sessionsPath = "/v1/sessions"

// Sessions opens streams to running attempts. All streams share one connection to the gateway, which the first stream
// opens and which is reopened after a loss. Its methods are safe for concurrent use.
type Sessions struct {
	client *Client

	mu   sync.Mutex
	link *wire.Session // nil before the first stream
}

// Sessions returns the sessions of a client. The caller must close them.
func (a *Client) Sessions() *Sessions { return &Sessions{client: a} }

// Close ends all streams.
func (s *Sessions) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != nil {
		_ = s.link.Close()
	}
}

// Open opens a stream and reads the gateway's reply. Its error carries an exit code.
func (s *Sessions) Open(ctx context.Context, h *v1.SessionHeader) (wire.Conn, *v1.SessionReply, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, callTimeout, fmt.Errorf("the gateway at %s has not answered within %s", s.client.URL(), callTimeout))
	defer cancel()
	for {
		link, fresh, err := s.connect(ctx)
		if err != nil {
			return nil, nil, s.failure(ctx, err)
		}
		conn, err := link.Open(ctx)
		if err != nil {
			if !fresh && ctx.Err() == nil {
				_ = link.Close() // the connection was lost, which had gone unnoticed
				continue
			}
			return nil, nil, s.failure(ctx, err)
		}
		reply, err := wire.Request(ctx, conn, h)
		if err != nil {
			return nil, nil, s.failure(ctx, err)
		}
		return conn, reply, nil
	}
}

// connect returns the connection to the gateway and reports whether it is new.
func (s *Sessions) connect(ctx context.Context) (link *wire.Session, fresh bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != nil {
		select {
		case <-s.link.Done():
		default:
			return s.link, false, nil
		}
	}
	err = s.client.gateways.Each(ctx, func(ctx context.Context, gateway string) (answered bool, err error) {
		conn, err := wire.Dial(ctx, wire.DialOptions{
			URL: gateway, Path: sessionsPath, Token: s.client.gateways.Token, TLS: s.client.gateways.TLS(), Header: actorHeader(),
		})
		if err == nil {
			s.link = wire.NewSession(conn, true)
			s.link.DescribeLoss("the connection to the gateway at " + gateway + " was lost")
		}
		_, refused := errors.AsType[*wire.RefusedError](err)
		return refused, err
	})
	if err != nil {
		return nil, false, err
	}
	return s.link, true, nil
}

// actorHeader returns a header that names the user, as calls have.
func actorHeader() http.Header {
	h := http.Header{}
	if who := thisUser(); who != "" {
		h.Set(names.ActorHeader, who)
	}
	return h
}

// failure converts the error of a stream that was not opened to an error with an exit code.
func (s *Sessions) failure(ctx context.Context, err error) error {
	refused, ok := errors.AsType[*wire.RefusedError](err)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, wire.ErrLost):
		return &exit.Error{Code: exit.CodeSystem, Err: errors.New(words.OneLine(err.Error()))}
	case !ok:
		// As for a call, the gateway is unreachable.
		return s.client.Failure(connect.NewError(connect.CodeUnavailable, err))
	}
	said := errors.New(words.OneLine(refused.Message))
	var code connect.Code
	if err := code.UnmarshalText([]byte(refused.Code)); err != nil {
		code = codeOfStatus(refused.Status)
	}
	switch code {
	case connect.CodeFailedPrecondition:
		return &exit.Error{Code: exit.CodeNotDone, Err: said}
	case connect.CodeInvalidArgument, connect.CodeNotFound, connect.CodeUnauthenticated, connect.CodePermissionDenied, connect.CodeAborted,
		connect.CodeAlreadyExists:
		return s.client.Failure(connect.NewError(code, said))
	}
	return &exit.Error{Code: exit.CodeSystem, Err: said}
}

// codeOfStatus returns the Connect code for a response that names none.
func codeOfStatus(status int) connect.Code {
	switch status {
	case http.StatusUnauthorized:
		return connect.CodeUnauthenticated
	case http.StatusForbidden:
		return connect.CodePermissionDenied
	}
	return connect.CodeUnknown
}
