package rpcerror

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"connectrpc.com/connect"
	"go.temporal.io/api/serviceerror"

	"switchyard/activities/registry"
	"switchyard/activities/store"
)

func TestErrorsMapToConnectCodes(t *testing.T) {
	for _, test := range []struct {
		err  error
		want connect.Code
	}{
		{serviceerror.NewNotFound("x"), connect.CodeNotFound},
		{fmt.Errorf("read: %w", store.ErrNotFound), connect.CodeNotFound},
		{serviceerror.NewWorkflowExecutionAlreadyStarted("x", "", ""), connect.CodeAlreadyExists},
		{serviceerror.NewInvalidArgument("x"), connect.CodeInvalidArgument},
		{serviceerror.NewPermissionDenied("x", ""), connect.CodePermissionDenied},
		{&serviceerror.ResourceExhausted{Message: "x"}, connect.CodeResourceExhausted},
		{serviceerror.NewFailedPrecondition("x"), connect.CodeFailedPrecondition},
		{serviceerror.NewNamespaceNotFound("x"), connect.CodeFailedPrecondition},
		{fmt.Errorf("store: %w", store.ErrLowSpace), connect.CodeFailedPrecondition},
		{fmt.Errorf("store: %w", store.ErrLogQuota), connect.CodeOutOfRange},
		{serviceerror.NewUnavailable("x"), connect.CodeUnavailable},
		{serviceerror.NewWorkflowNotReady("x"), connect.CodeUnavailable},
		{serviceerror.NewQueryFailed("x"), connect.CodeUnavailable},
		{serviceerror.NewDeadlineExceeded("x"), connect.CodeDeadlineExceeded},
		{fmt.Errorf("ask: %w", context.DeadlineExceeded), connect.CodeDeadlineExceeded},
		{context.Canceled, connect.CodeCanceled},
		{errors.New("x"), connect.CodeInternal},
		{fmt.Errorf("wrapped: %w", NotFound("x")), connect.CodeNotFound},
		{fmt.Errorf("wrapped: %w", WrongState("x")), connect.CodeAborted},
		{&registry.Error{Kind: registry.ErrState, Message: "x"}, connect.CodeAborted},
		{&registry.Error{Kind: registry.ErrTaken, Message: "x"}, connect.CodeAborted},
		{&registry.Error{Kind: registry.ErrOutdated, Message: "x"}, connect.CodeAborted},
		{&registry.Error{Kind: registry.ErrNoControl, Message: "x"}, connect.CodeUnavailable},
	} {
		if got := connect.CodeOf(ToConnect(test.err)); got != test.want {
			t.Errorf("%T: %v, not %v", test.err, got, test.want)
		}
	}
	if ToConnect(nil) != nil {
		t.Error("no error has a code")
	}
}
