package tunnel

import (
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"switchyard/activities/sessions/wire"
	"switchyard/gateway/rpcerror"
)

// errStopping returns the error for requests that arrive while the hub closes.
func errStopping() error { return unavailable("the gateway is shutting down") }

func unavailable(format string, args ...any) error {
	return connect.NewError(connect.CodeUnavailable, fmt.Errorf(format, args...))
}

func exhausted(format string, args ...any) error {
	return connect.NewError(connect.CodeResourceExhausted, fmt.Errorf(format, args...))
}

func denied(format string, args ...any) error {
	return connect.NewError(connect.CodePermissionDenied, fmt.Errorf(format, args...))
}

// codedError converts the error of a stream to a Connect error: with the code of the peer that refused it, or Unavailable if
// the stream was lost.
func codedError(err error) error {
	if refused, ok := errors.AsType[*wire.RefusedError](err); ok {
		var code connect.Code
		if code.UnmarshalText([]byte(refused.Code)) != nil {
			code = connect.CodeUnknown
		}
		return connect.NewError(code, errors.New(refused.Message))
	}
	if errors.Is(err, wire.ErrLost) {
		return connect.NewError(connect.CodeUnavailable, err)
	}
	return rpcerror.ToConnect(err)
}

// refuse answers a stream with an error and closes it.
func refuse(conn wire.Conn, err error) {
	message := err.Error()
	if coded, ok := errors.AsType[*connect.Error](err); ok {
		message = coded.Message()
	}
	wire.Refuse(conn, rpcerror.CodeOf(err).String(), message)
}
