package rpcerror

import (
	"context"
	"errors"
	"fmt"

	"connectrpc.com/connect"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/registry"
	"switchyard/activities/store"
)

// NotFound returns an error with the code NotFound.
func NotFound(format string, args ...any) error {
	return connect.NewError(connect.CodeNotFound, fmt.Errorf(format, args...))
}

// NoRun returns the error for a run that does not exist. Its detail names the run, so that clients can distinguish a missing run
// from a missing task.
func NoRun(text string) error { return Missing("run", text, "") }

// NoNode returns the error for a node that does not exist.
func NoNode(text string) error { return Missing("node", text, "") }

// Missing returns the error for a resource that does not exist, with a detail that names its kind. The hint, such as the
// nearest name, may be empty.
func Missing(kind, text, hint string) error {
	message := fmt.Sprintf("there is no %s %q", kind, text)
	if hint != "" {
		message += "; " + hint
	}
	return MissingAs(kind, text, message)
}

// MissingAs returns an error like that of Missing, with a message of its own.
func MissingAs(kind, text, message string) error {
	err := connect.NewError(connect.CodeNotFound, errors.New(message))
	// Best effort: the error is useful without its detail.
	if detail, failed := connect.NewErrorDetail(&errdetails.ResourceInfo{ResourceType: kind, ResourceName: text}); failed == nil {
		err.AddDetail(detail)
	}
	return err
}

// WrongState returns the error for a request that conflicts with the state of its subject (HTTP status 409). Retrying is
// useless until the subject changes; transient conditions are Unavailable instead.
func WrongState(format string, args ...any) error {
	return connect.NewError(connect.CodeAborted, fmt.Errorf(format, args...))
}

// Invalid returns the error for a malformed request, with the code InvalidArgument.
func Invalid(format string, args ...any) error {
	return connect.NewError(connect.CodeInvalidArgument, fmt.Errorf(format, args...))
}

// TooLarge returns the error for a request whose body exceeds a number of bytes, which the text rounds down to MiB.
func TooLarge(maxBytes int64) error {
	return connect.NewError(connect.CodeResourceExhausted, fmt.Errorf("the body exceeds the limit of %d MiB", maxBytes>>20))
}

// InvalidWith returns err with the code InvalidArgument and a detail.
func InvalidWith(err error, detail proto.Message) error {
	failed := connect.NewError(connect.CodeInvalidArgument, err)
	if d, err := connect.NewErrorDetail(detail); err == nil {
		failed.AddDetail(d)
	}
	return failed
}

// ToConnect gives an error of Temporal, the store or a context the code that clients of the gateway receive. An error that
// already has a code is returned unchanged.
func ToConnect(err error) error {
	if _, ok := errors.AsType[*connect.Error](err); ok || err == nil {
		return err
	}
	return connect.NewError(CodeOf(err), err)
}

// CodeOf returns the code that clients of the gateway receive for an error.
func CodeOf(err error) connect.Code {
	if coded, ok := errors.AsType[*connect.Error](err); ok {
		return coded.Code()
	}
	switch {
	case Is[*serviceerror.NotFound](err), errors.Is(err, store.ErrNotFound), errors.Is(err, registry.ErrUnknown):
		return connect.CodeNotFound
	case Is[*serviceerror.WorkflowExecutionAlreadyStarted](err), Is[*serviceerror.AlreadyExists](err):
		return connect.CodeAlreadyExists
	case Is[*serviceerror.InvalidArgument](err):
		return connect.CodeInvalidArgument
	case Is[*serviceerror.PermissionDenied](err):
		return connect.CodePermissionDenied
	case Is[*serviceerror.ResourceExhausted](err):
		return connect.CodeResourceExhausted
	case errors.Is(err, registry.ErrState), errors.Is(err, registry.ErrTaken), errors.Is(err, registry.ErrOutdated):
		return connect.CodeAborted
	case Is[*serviceerror.FailedPrecondition](err), Is[*serviceerror.NamespaceNotFound](err), errors.Is(err, store.ErrLowSpace):
		return connect.CodeFailedPrecondition
	case errors.Is(err, store.ErrLogQuota), Is[*store.ArtifactQuotaError](err):
		return connect.CodeOutOfRange
	case Is[*serviceerror.Unavailable](err), Is[*serviceerror.WorkflowNotReady](err),
		Is[*serviceerror.QueryFailed](err), Is[*serviceerror.NamespaceUnavailable](err), errors.Is(err, registry.ErrNoControl):
		return connect.CodeUnavailable
	case Is[*serviceerror.DeadlineExceeded](err), errors.Is(err, context.DeadlineExceeded):
		return connect.CodeDeadlineExceeded
	case Is[*serviceerror.Canceled](err), errors.Is(err, context.Canceled):
		return connect.CodeCanceled
	}
	return connect.CodeInternal
}

// IsPermanent reports whether a repeated request to Temporal would fail with the same error.
func IsPermanent(err error) bool {
	switch CodeOf(err) {
	case connect.CodeNotFound, connect.CodeInvalidArgument, connect.CodePermissionDenied:
		return true
	}
	return false
}

// IsTimeout reports whether a workflow ended by its own time-out.
func IsTimeout(err error) bool { return Is[*temporal.TimeoutError](err) }

// Is reports whether an error of type E is in the chain of err.
func Is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}
