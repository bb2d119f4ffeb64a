package auth

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	v1 "switchyard/proto/switchyard/v1"
)

// Authorize returns an error unless the caller of ctx has the role that a call requires. A call that declares no role is
// refused to everyone.
func Authorize(ctx context.Context, call protoreflect.MethodDescriptor) error {
	rules := v1.RulesOf(call)
	if rules.GetNode() && From(ctx).Role == v1.Role_ROLE_NODE {
		return nil
	}
	return authorize(ctx, rules.GetRole(), string(call.Name()))
}

// authorize returns an error unless the caller of ctx has at least the given role.
func authorize(ctx context.Context, least v1.Role, what string) error {
	p := From(ctx)
	if p.Role.Includes(least) {
		return nil
	}
	if least == v1.Role_ROLE_UNSPECIFIED {
		return connect.NewError(connect.CodePermissionDenied, fmt.Errorf("%s declares no role, so no caller may use it", what))
	}
	return connect.NewError(connect.CodePermissionDenied,
		fmt.Errorf("%s needs the role %s; %s has the role %s", what, least.Word(), orNoName(p.Name), orNoName(p.Role.Word())))
}

func orNoName(text string) string {
	if text = strings.TrimSpace(text); text == "" {
		return "the caller"
	}
	return text
}

// Require returns a handler that passes requests of callers with at least the given role to next. It is for paths outside
// the services.
func Require(least v1.Role, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := authorize(r.Context(), least, r.URL.Path); err != nil {
			Refuse(w, r, err)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Interceptor enforces the role in the rules of each call, unary or streaming.
type Interceptor struct{}

var _ connect.Interceptor = Interceptor{}

// WrapUnary checks unary calls.
func (Interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if err := authorizeSpec(ctx, req.Spec()); err != nil {
			return nil, err
		}
		return next(ctx, req)
	}
}

// WrapStreamingHandler checks streaming calls.
func (Interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		if err := authorizeSpec(ctx, conn.Spec()); err != nil {
			return err
		}
		return EndOf(ctx, next(ctx, conn))
	}
}

// WrapStreamingClient returns next unchanged. It is never called on a server.
func (Interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

func authorizeSpec(ctx context.Context, spec connect.Spec) error {
	call, ok := spec.Schema.(protoreflect.MethodDescriptor)
	if !ok {
		return authorize(ctx, v1.Role_ROLE_UNSPECIFIED, spec.Procedure)
	}
	return Authorize(ctx, call)
}
