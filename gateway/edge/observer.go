package edge

import (
	"context"
	"errors"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
)

// Observer is an interceptor that, if true, refuses every call that is not declared as a read. All streams are reads.
type Observer bool

var _ connect.Interceptor = Observer(false)

// WrapUnary refuses calls that change anything.
func (o Observer) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	if !o {
		return next
	}
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if !isRead(req.Spec()) {
			return nil, connect.NewError(connect.CodePermissionDenied, errors.New("this gateway is a read-only observer; use another gateway, or start it with --role auto"))
		}
		return next(ctx, req)
	}
}

// isRead reports whether a call is declared as a read.
func isRead(spec connect.Spec) bool {
	call, ok := spec.Schema.(protoreflect.MethodDescriptor)
	return ok && v1.RulesOf(call).GetEffect() == v1.Effect_EFFECT_READ
}

// WrapStreamingHandler passes streams through.
func (o Observer) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// WrapStreamingClient returns next unchanged. It is never called on a server.
func (o Observer) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}
