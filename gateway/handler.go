package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"

	"buf.build/go/protovalidate"
	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"connectrpc.com/validate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/gateway/edge"
	"switchyard/gateway/openapi"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// maxMessageBytes is the largest request that is read.
const maxMessageBytes = 4 << 20

// Handler serves RunService, WorkflowService, ScheduleService, NodeService and BlobService to Connect, gRPC and
// gRPC-Web clients, with the gRPC services for health and reflection, GET /healthz
// (the process lives) and GET /readyz (it can answer calls) beside them. gRPC needs an HTTP/2 server; Listen starts one.
func (g *Gateway) Handler() http.Handler {
	options := append(edge.StrictJSONs(),
		connect.WithInterceptors(edge.NewInterceptor(g.log, g.bounds), edge.Observer(g.config.Observer), validate.NewInterceptor(validate.WithValidator(requestValidator{protovalidate.GlobalValidator}))),
		connect.WithReadMaxBytes(maxMessageBytes),
		connect.WithRecover(g.recovered),
	)
	rpc := http.NewServeMux()
	rpc.Handle(switchyardv1connect.NewRunServiceHandler(g, options...))
	rpc.Handle(switchyardv1connect.NewBlobServiceHandler(blobs{g.store}, slices.Concat(options, []connect.HandlerOption{connect.WithReadMaxBytes(maxBlobMessageBytes)})...))
	rpc.Handle(switchyardv1connect.NewNodeServiceHandler(nodeService{g}, options...))
	rpc.Handle(switchyardv1connect.NewWorkflowServiceHandler(workflowService{g}, options...))
	rpc.Handle(switchyardv1connect.NewScheduleServiceHandler(scheduleService{g.times, g.config.Now}, options...))
	services := []string{switchyardv1connect.RunServiceName, switchyardv1connect.WorkflowServiceName, switchyardv1connect.ScheduleServiceName, switchyardv1connect.NodeServiceName, switchyardv1connect.BlobServiceName}
	rpc.Handle(grpchealth.NewHandler(grpchealth.NewStaticChecker(services...)))
	reflector := grpcreflect.NewStaticReflector(append(services, grpchealth.HealthV1ServiceName)...)
	streams := connect.WithInterceptors(edge.NewInterceptor(g.log, g.bounds))
	rpc.Handle(grpcreflect.NewHandlerV1(reflector, streams))
	rpc.Handle(grpcreflect.NewHandlerV1Alpha(reflector, streams))
	// Probes get an answer even while the bounds are reached.
	mux := http.NewServeMux()
	mux.Handle("/", g.bounds.Protect(g.sse.Wrap(rpc)))
	mux.HandleFunc("GET /healthz", g.healthz)
	mux.HandleFunc("GET /readyz", g.readyz)
	mux.Handle("GET "+openapi.Path, openapi.Handler())
	g.serveMetrics(mux)
	return edge.GuardHosts(g.config.Hosts, mux)
}

func (g *Gateway) healthz(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	// An error means that the caller has gone.
	_ = json.NewEncoder(w).Encode(map[string]string{"status": "ok", "version": g.config.Version})
}

func (g *Gateway) recovered(_ context.Context, spec connect.Spec, _ http.Header, cause any) error {
	g.log.Error("a call panicked", "procedure", spec.Procedure, "panic", cause, "stack", string(debug.Stack()))
	return connect.NewError(connect.CodeInternal, fmt.Errorf("%s panicked; the gateway's log has more", spec.Procedure))
}

// requestValidator checks the rules of requests but for definitions, about which
// workflows/definition has the better messages.
type requestValidator struct{ protovalidate.Validator }

// Validate checks m.
func (v requestValidator) Validate(m proto.Message, options ...protovalidate.ValidationOption) error {
	return v.Validator.Validate(m, append(options, protovalidate.WithFilter(outsideDefinitions{}))...)
}

type outsideDefinitions struct{}

// ShouldValidate leaves out what lies in a definition.
func (outsideDefinitions) ShouldValidate(_ protoreflect.Message, d protoreflect.Descriptor) bool {
	field, ok := d.(protoreflect.FieldDescriptor)
	return !ok || field.Message() == nil || field.Message().FullName() != "switchyard.v1.Definition"
}

// errStopping ends the streams of a gateway that shuts down.
func errStopping() error {
	return connect.NewError(connect.CodeUnavailable, errors.New("the gateway is shutting down"))
}
