package audit

import (
	"context"
	"net/http"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// forwardedHeader is the header in which proxies name the original client. Any client can send it.
const forwardedHeader = "X-Forwarded-For"

// Interceptor records calls. It must run outside the interceptor that checks roles.
type Interceptor struct{ Recorder *Recorder }

var _ connect.Interceptor = Interceptor{}

// WrapUnary records a call that changes something or is refused, before the caller gets the response.
func (i Interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		res, err := next(ctx, req)
		call, ok := req.Spec().Schema.(protoreflect.MethodDescriptor)
		if !ok || !isRecorded(call, err) {
			return res, err
		}
		e := newEntry(ctx, actionOf(call), req.Peer().Addr, req.Header().Get(forwardedHeader))
		if m, ok := req.Any().(proto.Message); ok {
			addObjects(e, call, m.ProtoReflect())
		}
		if err == nil {
			if m, ok := res.Any().(proto.Message); ok {
				addObjects(e, call, m.ProtoReflect())
			}
		}
		setResult(e, err)
		if e.GetResult() == v1.AuditOK || !isRefusal(rpcerror.CodeOf(err)) {
			i.Recorder.Record(ctx, e)
		} else {
			i.Recorder.Note(e)
		}
		return res, err
	}
}

// WrapStreamingHandler records refused streams. No stream changes anything.
func (i Interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		err := next(ctx, conn)
		if call, ok := conn.Spec().Schema.(protoreflect.MethodDescriptor); ok && isRecorded(call, err) {
			e := newEntry(ctx, actionOf(call), conn.Peer().Addr, conn.RequestHeader().Get(forwardedHeader))
			setResult(e, err)
			i.Recorder.Note(e)
		}
		return err
	}
}

// WrapStreamingClient returns next unchanged. It is never called on a server.
func (i Interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// isRecorded reports whether a call that has ended with err gets an entry.
func isRecorded(call protoreflect.MethodDescriptor, err error) bool {
	rules := v1.RulesOf(call)
	return rules.GetEffect() == v1.Effect_EFFECT_WRITE && !rules.GetUnaudited() || err != nil && isRefusal(rpcerror.CodeOf(err))
}

// NoteRequest records a request that was refused before it reached a call.
func (r *Recorder) NoteRequest(req *http.Request, err error) {
	e := newEntry(req.Context(), req.Method+" "+req.URL.Path, req.RemoteAddr, req.Header.Get(forwardedHeader))
	setResult(e, err)
	r.Note(e)
}
