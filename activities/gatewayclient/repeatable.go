package gatewayclient

import (
	"context"

	"connectrpc.com/connect"
)

// repeatable is the key of the context of a call that has no side effects.
type repeatable struct{}

// Calls returns the option of clients of services that lets a call without side effects be sent again to another gateway.
func Calls() connect.ClientOption { return connect.WithInterceptors(marker{}) }

// marker marks calls without side effects.
type marker struct{}

// Repeatable returns the context of a request without side effects, which is then sent again to another gateway if it is lost.
func Repeatable(ctx context.Context) context.Context {
	return context.WithValue(ctx, repeatable{}, true)
}

func mark(ctx context.Context, spec connect.Spec) context.Context {
	if spec.IdempotencyLevel == connect.IdempotencyNoSideEffects {
		return Repeatable(ctx)
	}
	return ctx
}

// WrapUnary implements connect.Interceptor.
func (marker) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		return next(mark(ctx, req.Spec()), req)
	}
}

// WrapStreamingClient implements connect.Interceptor.
func (marker) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		return next(mark(ctx, spec), spec)
	}
}

// WrapStreamingHandler implements connect.Interceptor.
func (marker) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}
