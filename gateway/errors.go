package gateway

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"switchyard/activities/registry"
	"switchyard/activities/store"
)

// errStopping ends the streams of a gateway that shuts down.
func errStopping() error {
	return connect.NewError(connect.CodeUnavailable, errors.New("the gateway is shutting down"))
}

func notFound(format string, args ...any) error {
	return connect.NewError(connect.CodeNotFound, fmt.Errorf(format, args...))
}

// noRun is the error for a run that is not known. The resource it carries tells
// clients that it is the run that is missing and not a task of it.
func noRun(text string) error { return missing("run", text) }

// noNode is the error for a node that is not known.
func noNode(text string) error { return missing("node", text) }

func missing(kind, text string) error {
	err := connect.NewError(connect.CodeNotFound, fmt.Errorf("there is no %s %q", kind, text))
	// A detail that cannot be encoded is not worth losing the error for.
	if detail, failed := connect.NewErrorDetail(&errdetails.ResourceInfo{ResourceType: kind, ResourceName: text}); failed == nil {
		err.AddDetail(detail)
	}
	return err
}

// wrongState is the error for a request that the state of its subject forbids.
func wrongState(format string, args ...any) error {
	return connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf(format, args...))
}

func invalid(format string, args ...any) error {
	return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf(format, args...))
}

// toConnect gives an error of Temporal, of the store or of a context the code
// that clients of the gateway see. It leaves alone what has a code already.
func toConnect(err error) error {
	if _, ok := errors.AsType[*connect.Error](err); ok || err == nil {
		return err
	}
	return connect.NewError(codeOf(err), err)
}

func codeOf(err error) connect.Code {
	if coded, ok := errors.AsType[*connect.Error](err); ok {
		return coded.Code()
	}
	switch {
	case is[*serviceerror.NotFound](err), errors.Is(err, store.ErrNotFound), errors.Is(err, registry.ErrUnknown):
		return connect.CodeNotFound
	case is[*serviceerror.WorkflowExecutionAlreadyStarted](err), is[*serviceerror.AlreadyExists](err):
		return connect.CodeAlreadyExists
	case is[*serviceerror.InvalidArgument](err):
		return connect.CodeInvalidArgument
	case is[*serviceerror.PermissionDenied](err):
		return connect.CodePermissionDenied
	case is[*serviceerror.ResourceExhausted](err):
		return connect.CodeResourceExhausted
	case is[*serviceerror.FailedPrecondition](err), is[*serviceerror.NamespaceNotFound](err),
		errors.Is(err, registry.ErrState), errors.Is(err, registry.ErrTaken), errors.Is(err, registry.ErrOutdated), errors.Is(err, store.ErrLowSpace):
		return connect.CodeFailedPrecondition
	case errors.Is(err, store.ErrLogQuota):
		return connect.CodeOutOfRange
	case is[*serviceerror.Unavailable](err), is[*serviceerror.WorkflowNotReady](err),
		is[*serviceerror.QueryFailed](err), is[*serviceerror.NamespaceUnavailable](err), errors.Is(err, registry.ErrNoControl):
		return connect.CodeUnavailable
	case is[*serviceerror.DeadlineExceeded](err), errors.Is(err, context.DeadlineExceeded):
		return connect.CodeDeadlineExceeded
	case is[*serviceerror.Canceled](err), errors.Is(err, context.Canceled):
		return connect.CodeCanceled
	}
	return connect.CodeInternal
}

// lasting says that asking Temporal again would give the same error.
func lasting(err error) bool {
	switch codeOf(err) {
	case connect.CodeNotFound, connect.CodeInvalidArgument, connect.CodePermissionDenied:
		return true
	}
	return false
}

// timedOut says that a workflow ended by its own time-out.
func timedOut(err error) bool { return is[*temporal.TimeoutError](err) }

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
