package a2a

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"github.com/a2aproject/a2a-go/v2/a2a"

	"switchyard/gateway/auth"
)

// errorf returns an error of the protocol with a formatted message.
func errorf(kind error, format string, args ...any) error {
	return a2a.NewError(kind, fmt.Sprintf(format, args...))
}

// kinds maps codes of calls to errors of the protocol.
var kinds = map[connect.Code]error{
	connect.CodeInvalidArgument:    a2a.ErrInvalidParams,
	connect.CodeAlreadyExists:      a2a.ErrInvalidParams,
	connect.CodeNotFound:           a2a.ErrTaskNotFound,
	connect.CodeAborted:            a2a.ErrUnsupportedOperation,
	connect.CodeFailedPrecondition: a2a.ErrUnsupportedOperation,
	connect.CodeUnauthenticated:    a2a.ErrUnauthenticated,
	connect.CodePermissionDenied:   a2a.ErrUnauthorized,
	connect.CodeInternal:           a2a.ErrInternalError,
	connect.CodeUnknown:            a2a.ErrInternalError,
}

// toProtocolError converts the error of a call to an error of the protocol. Errors of the protocol are returned unchanged.
func toProtocolError(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*a2a.Error](err); ok || err == nil {
		return err
	}
	coded, ok := errors.AsType[*connect.Error](auth.EndOf(ctx, err))
	if !ok {
		return err
	}
	kind, ok := kinds[coded.Code()]
	if !ok {
		kind = a2a.ErrServerError
	}
	return errorf(kind, "%s: %s", coded.Code(), coded.Message())
}
