package servicetest

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// Fake answers calls as the test configures, and records their requests. Other calls return Unimplemented. It is safe for
// concurrent use. The zero value is ready to use.
type Fake struct {
	mu      sync.Mutex
	unary   map[string]connect.UnaryFunc
	streams map[string]connect.StreamingHandlerFunc
	calls   []Call
}

// Call is a call that a Fake has received.
type Call struct {
	Method  protoreflect.MethodDescriptor
	Request proto.Message
}

// Answer registers do as the handler of a procedure, such as switchyardv1connect.RunServiceGetRunProcedure.
func Answer[Req, Res any](f *Fake, procedure string, do func(context.Context, *Req) (*Res, error)) {
	f.setUnary(procedure, func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		res, err := do(ctx, request.Any().(*Req))
		if err != nil {
			return nil, err
		}
		return connect.NewResponse(res), nil
	})
}

// AnswerWith registers a fixed response for a procedure.
func AnswerWith[Res any](f *Fake, procedure string, res *Res) {
	f.setUnary(procedure, func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) {
		return connect.NewResponse(res), nil
	})
}

// Refuse registers a fixed error for a procedure.
func Refuse(f *Fake, procedure string, code connect.Code, text string) {
	f.setUnary(procedure, func(context.Context, connect.AnyRequest) (connect.AnyResponse, error) {
		return nil, connect.NewError(code, errors.New(text))
	})
}

// AnswerStream registers do as the handler of a server-streaming procedure.
func AnswerStream[Req, Res any](f *Fake, procedure string, do func(ctx context.Context, request *Req, send func(*Res) error) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.streams == nil {
		f.streams = map[string]connect.StreamingHandlerFunc{}
	}
	f.streams[procedure] = func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		request := new(Req)
		if err := conn.Receive(request); err != nil {
			return err
		}
		f.record(conn.Spec(), request)
		return do(ctx, request, func(res *Res) error { return conn.Send(res) })
	}
}

func (f *Fake) setUnary(procedure string, do connect.UnaryFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.unary == nil {
		f.unary = map[string]connect.UnaryFunc{}
	}
	f.unary[procedure] = do
}

func (f *Fake) record(spec connect.Spec, request any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = append(f.calls, Call{spec.Schema.(protoreflect.MethodDescriptor), proto.Clone(request.(proto.Message))})
}

// Calls returns the recorded calls, oldest first.
func (f *Fake) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]Call(nil), f.calls...)
}

// Forget drops the recorded calls.
func (f *Fake) Forget() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls = nil
}

// Requests returns the recorded requests of a type, oldest first.
func Requests[Req any](f *Fake) []*Req {
	var all []*Req
	for _, call := range f.Calls() {
		if request, ok := call.Request.(any).(*Req); ok {
			all = append(all, request)
		}
	}
	return all
}

// WrapUnary implements connect.Interceptor.
func (f *Fake) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, request connect.AnyRequest) (connect.AnyResponse, error) {
		f.record(request.Spec(), request.Any())
		f.mu.Lock()
		do := f.unary[request.Spec().Procedure]
		f.mu.Unlock()
		if do == nil {
			do = next
		}
		return do(ctx, request)
	}
}

// WrapStreamingHandler implements connect.Interceptor.
func (f *Fake) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		f.mu.Lock()
		do := f.streams[conn.Spec().Procedure]
		f.mu.Unlock()
		if do == nil {
			do = next
		}
		return do(ctx, conn)
	}
}

// WrapStreamingClient implements connect.Interceptor.
func (f *Fake) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// Handler returns an HTTP handler of the services that people use.
func (f *Fake) Handler(more ...connect.Interceptor) *http.ServeMux {
	mux, options := http.NewServeMux(), connect.WithInterceptors(append(more, f)...)
	mux.Handle(switchyardv1connect.NewRunServiceHandler(switchyardv1connect.UnimplementedRunServiceHandler{}, options))
	mux.Handle(switchyardv1connect.NewTaskServiceHandler(switchyardv1connect.UnimplementedTaskServiceHandler{}, options))
	mux.Handle(switchyardv1connect.NewWorkflowServiceHandler(switchyardv1connect.UnimplementedWorkflowServiceHandler{}, options))
	mux.Handle(switchyardv1connect.NewScheduleServiceHandler(switchyardv1connect.UnimplementedScheduleServiceHandler{}, options))
	mux.Handle(switchyardv1connect.NewNodeServiceHandler(switchyardv1connect.UnimplementedNodeServiceHandler{}, options))
	return mux
}
