package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strings"

	"buf.build/go/protovalidate"
	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"
	"connectrpc.com/validate"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"switchyard/gateway/edge"
	"switchyard/gateway/openapi"
	"switchyard/gateway/rest"
	"switchyard/gateway/tasklist"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// maxMessageBytes is the largest request that is read.
const maxMessageBytes = 4 << 20

// service is a service of the API with its Connect handler.
type service struct {
	path    string
	handler http.Handler
}

// services returns the handlers of all services.
func (g *Gateway) services() []service {
	options := append(edge.StrictJSONs(),
		connect.WithInterceptors(edge.NewInterceptor(g.log, g.bounds), edge.Observer(g.config.Observer), validate.NewInterceptor(validate.WithValidator(requestValidator{protovalidate.GlobalValidator}))),
		connect.WithReadMaxBytes(maxMessageBytes),
		connect.WithRecover(g.recovered),
	)
	blobOptions := slices.Concat(options, []connect.HandlerOption{connect.WithReadMaxBytes(maxBlobMessageBytes)})
	serve := func(path string, handler http.Handler) service { return service{path, handler} }
	return []service{
		serve(switchyardv1connect.NewRunServiceHandler(g, options...)),
		serve(switchyardv1connect.NewTaskServiceHandler(taskService{g, tasklist.New(g.index, g.reader, g.nodes)}, options...)),
		serve(switchyardv1connect.NewWorkflowServiceHandler(workflowService{g}, options...)),
		serve(switchyardv1connect.NewScheduleServiceHandler(scheduleService{g.times, g.config.Now}, options...)),
		serve(switchyardv1connect.NewNodeServiceHandler(nodeService{g}, options...)),
		serve(switchyardv1connect.NewBlobServiceHandler(blobs{g.store}, blobOptions...)),
	}
}

// Handler serves every door of the gateway: its services to Connect, gRPC and gRPC-Web clients, with the gRPC services for
// health and reflection; their REST paths, with GET /openapi.json; server-sent events; GET /healthz (the process lives) and GET /readyz (it can
// answer calls). gRPC needs an HTTP/2 server; Listen starts one.
func (g *Gateway) Handler() http.Handler {
	rpc := http.NewServeMux()
	var names []string
	for _, s := range g.services() {
		rpc.Handle(s.path, s.handler)
		names = append(names, strings.Trim(s.path, "/"))
	}
	rpc.Handle(grpchealth.NewHandler(grpchealth.NewStaticChecker(names...)))
	reflector := grpcreflect.NewStaticReflector(append(names, grpchealth.HealthV1ServiceName)...)
	streams := connect.WithInterceptors(edge.NewInterceptor(g.log, g.bounds))
	rpc.Handle(grpcreflect.NewHandlerV1(reflector, streams))
	rpc.Handle(grpcreflect.NewHandlerV1Alpha(reflector, streams))
	// Probes get an answer even while the bounds are reached.
	probes := http.NewServeMux()
	probes.HandleFunc("GET /healthz", g.healthz)
	probes.HandleFunc("GET /readyz", g.readyz)
	probes.Handle("GET "+openapi.Path, openapi.Handler())
	g.serveMetrics(probes)
	door, err := rest.New(rest.Config{Services: v1.Services(), Calls: rpc, Others: probes, MaxBodyBytes: maxMessageBytes})
	if err != nil {
		panic(err) // the annotations in proto contradict one another, which every test of the gateway shows
	}
	bounded := g.bounds.Protect(g.sse.Wrap(firstOf(rpc, door)))
	return edge.GuardHosts(g.config.Hosts, firstOf(probes, bounded))
}

// firstOf returns a handler that has rest answer what the mux has no pattern for. Unlike a pattern for all paths in the mux
// it redirects no request.
func firstOf(mux *http.ServeMux, rest http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" || path.Clean(r.URL.Path) != r.URL.Path {
			rest.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
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

// requestValidator checks the rules of requests but for definitions and their parts, about which
// workflows/definition has the better messages.
type requestValidator struct{ protovalidate.Validator }

// Validate checks m.
func (v requestValidator) Validate(m proto.Message, options ...protovalidate.ValidationOption) error {
	return v.Validator.Validate(m, append(options, protovalidate.WithFilter(outsideDefinitions{}))...)
}

type outsideDefinitions struct{}

// ShouldValidate leaves out what lies in a definition, or in a part of one.
func (outsideDefinitions) ShouldValidate(_ protoreflect.Message, d protoreflect.Descriptor) bool {
	field, ok := d.(protoreflect.FieldDescriptor)
	return !ok || field.Message() == nil || field.Message().ParentFile() != v1.File_switchyard_v1_definition_proto
}

// errStopping ends the streams of a gateway that shuts down.
func errStopping() error {
	return connect.NewError(connect.CodeUnavailable, errors.New("the gateway is shutting down"))
}
