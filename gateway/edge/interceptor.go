package edge

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"connectrpc.com/connect"

	"switchyard/gateway/rpcerror"
)

// unaryTimeout bounds calls of clients that set no deadline.
const unaryTimeout = 30 * time.Second

// interceptor is the outermost interceptor of every handler. It counts streams, gives errors their codes and logs
// calls: failures that are not the caller's fault as errors, the rest as debug.
type interceptor struct {
	log     *slog.Logger
	streams *openCount
	fault   func(context.Context) error
}

var _ connect.Interceptor = interceptor{}

// NewInterceptor returns an interceptor that logs to log and counts the streams in b. fault finds out why Temporal cannot work at
// the moment, and returns nil if it can.
func NewInterceptor(log *slog.Logger, b *Bounds, fault func(context.Context) error) connect.Interceptor {
	return interceptor{log, b.streams, fault}
}

// WrapUnary handles unary calls.
func (e interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		caller := ctx
		if _, ok := ctx.Deadline(); !ok {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, unaryTimeout)
			defer cancel()
		}
		start := time.Now()
		res, err := next(ctx, req)
		err = e.explain(caller, rpcerror.ToConnect(err))
		e.logCall(ctx, req.Spec(), start, err)
		return res, err
	}
}

// WrapStreamingHandler handles streaming calls.
func (e interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		start := time.Now()
		leave, err := e.streams.enter(clientOf(conn.Peer().Addr))
		if err == nil {
			defer leave()
			err = e.explain(ctx, rpcerror.ToConnect(next(ctx, conn)))
		}
		e.logCall(ctx, conn.Spec(), start, err)
		return err
	}
}

// WrapStreamingClient returns next unchanged. It is never called on a server.
func (e interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// explain adds the fault of Temporal to the error of a call that failed for lack of an answer. ctx is that of the caller, who may
// have ended the call.
func (e interceptor) explain(ctx context.Context, err error) error {
	coded, ok := errors.AsType[*connect.Error](err)
	if !ok || ctx.Err() != nil {
		return err
	}
	switch coded.Code() {
	case connect.CodeUnavailable, connect.CodeDeadlineExceeded, connect.CodeInternal:
		if fault := e.fault(ctx); fault != nil && ctx.Err() == nil {
			return connect.NewError(connect.CodeUnavailable, fmt.Errorf("%w (%s)", fault, coded.Message()))
		}
	}
	return err
}

func (e interceptor) logCall(ctx context.Context, spec connect.Spec, start time.Time, err error) {
	level, attrs := slog.LevelDebug, []slog.Attr{
		slog.String("procedure", spec.Procedure), slog.Duration("took", time.Since(start)),
	}
	if err != nil {
		attrs = append(attrs, slog.Any("error", err))
		switch connect.CodeOf(err) {
		case connect.CodeInternal, connect.CodeUnknown, connect.CodeDataLoss:
			level = slog.LevelError
		}
	}
	e.log.LogAttrs(ctx, level, "call", attrs...)
}
