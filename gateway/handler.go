package gateway

import (
	"context"
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

	library "switchyard/activities/environments"
	"switchyard/activities/grants"
	"switchyard/activities/metrics"
	"switchyard/gateway/a2a"
	"switchyard/gateway/audit"
	"switchyard/gateway/auth"
	"switchyard/gateway/blobs"
	"switchyard/gateway/edge"
	"switchyard/gateway/environments"
	"switchyard/gateway/inprocess"
	"switchyard/gateway/mcp"
	"switchyard/gateway/nodeaccess"
	"switchyard/gateway/nodes"
	"switchyard/gateway/openapi"
	"switchyard/gateway/rest"
	"switchyard/gateway/secrets"
	"switchyard/gateway/sshkeys"
	"switchyard/gateway/tasklist"
	"switchyard/gateway/tasks"
	"switchyard/gateway/tokens"
	"switchyard/gateway/tunnel"
	"switchyard/gateway/vps"
	"switchyard/gateway/web"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/names"
)

// maxMessageBytes bounds the size of a request.
const maxMessageBytes = 4 << 20

// service pairs a service of the API with its Connect handler.
type service struct {
	path    string
	handler http.Handler
}

// services returns the handlers of all services.
func (g *Gateway) services() []service {
	options := append(edge.StrictJSONs(),
		connect.WithInterceptors(edge.NewInterceptor(g.config.Logger, g.bounds), audit.Interceptor{Recorder: g.recorder}, auth.Interceptor{}, edge.Observer(g.config.Observer), validate.NewInterceptor(validate.WithValidator(requestValidator{protovalidate.GlobalValidator}))),
		connect.WithReadMaxBytes(maxMessageBytes),
		connect.WithRecover(g.recovered),
	)
	blobOptions := slices.Concat(options, []connect.HandlerOption{connect.WithReadMaxBytes(blobs.MaxMessageBytes)})
	tasks := tasks.Service{Runs: g.submitter, Lists: tasklist.New(g.index, g.reader, g.config.Nodes, g.config.Now)}
	access := nodeaccess.New(grants.New(g.config.Store), nodeaccess.Attempts{Client: g.config.Client}, g.reader)
	serve := func(path string, handler http.Handler) service { return service{path, handler} }
	return []service{
		serve(switchyardv1connect.NewRunServiceHandler(g.runs, options...)),
		serve(switchyardv1connect.NewTaskServiceHandler(tasks, options...)),
		serve(switchyardv1connect.NewVpsServiceHandler(vps.Service{Runs: g.runs, Tasks: tasks, SSH: vps.Door{Host: g.config.SSHHost, Port: g.config.SSHPort}}, options...)),
		serve(switchyardv1connect.NewEnvironmentServiceHandler(g.environments(), options...)),
		serve(switchyardv1connect.NewWorkflowServiceHandler(g.workflows, options...)),
		serve(switchyardv1connect.NewScheduleServiceHandler(g.schedules, options...)),
		serve(switchyardv1connect.NewNodeServiceHandler(nodes.Service{Registry: g.config.Nodes, Now: g.config.Now}, options...)),
		serve(switchyardv1connect.NewAuthServiceHandler(tokens.Service{Registry: g.config.Tokens}, options...)),
		serve(switchyardv1connect.NewSecretServiceHandler(g.secrets(), options...)),
		serve(switchyardv1connect.NewKeyServiceHandler(sshkeys.Service{Registry: g.keys}, options...)),
		serve(switchyardv1connect.NewAuditServiceHandler(audit.Service{Store: g.config.Store, Now: g.config.Now}, options...)),
		serve(switchyardv1connect.NewBlobServiceHandler(blobs.Service{Store: g.config.Store, Access: access}, blobOptions...)),
	}
}

// environments returns the implementation of EnvironmentService.
func (g *Gateway) environments() environments.Service {
	return environments.Service{
		Library: library.New(g.config.Store), Creations: environments.Workflows{Client: g.config.Client, Now: g.config.Now}, Nodes: g.config.Nodes,
		Usage: environments.OpenRuns{Index: g.index, Reader: g.reader},
		FindSource: func(ctx context.Context, run, task, purpose string, isFit func(string) bool) (environments.Source, error) {
			a, err := g.tunnel.Find(ctx, run, task, purpose, isFit)
			return environments.Source{Run: a.Run, Chain: a.Chain, Task: a.Task, Type: a.Type, Node: a.Node, Claim: a.Claim}, err
		},
	}
}

// secrets returns the implementation of SecretService.
func (g *Gateway) secrets() secrets.Releaser {
	return secrets.Releaser{
		Service: secrets.Service{Vault: g.config.Vault}, Attempts: nodeaccess.Attempts{Client: g.config.Client}, Reader: g.reader, Locked: g.config.Authenticator != nil,
	}
}

// door is a path of the gateway that is not a call of a service.
type door struct {
	pattern string  // of http.ServeMux
	role    v1.Role // minimum role of a caller
	handler http.Handler
}

// doors returns the paths outside the services that state the role they need. They stay available while the limits on calls are
// reached.
func (g *Gateway) doors() []door {
	all := []door{
		{"GET " + openapi.Path, v1.Role_ROLE_VIEWER, openapi.Handler()},
		{"GET " + tunnel.SessionsPath, v1.Role_ROLE_USER, g.tunnel.Sessions()},
	}
	if g.config.Metrics != nil {
		all = append(all, door{"GET " + metrics.Path, v1.Role_ROLE_VIEWER, g.config.Metrics.Handler()})
	}
	return all
}

// rpcDoors returns the services that gRPC clients expect besides those of the API: health and reflection.
func (g *Gateway) rpcDoors(services []string) []door {
	reflector := grpcreflect.NewStaticReflector(append(services, grpchealth.HealthV1ServiceName)...)
	streams := connect.WithInterceptors(edge.NewInterceptor(g.config.Logger, g.bounds))
	viewers := func(pattern string, handler http.Handler) door {
		return door{pattern, v1.Role_ROLE_VIEWER, handler}
	}
	return []door{
		viewers(grpchealth.NewHandler(grpchealth.NewStaticChecker(services...))),
		viewers(grpcreflect.NewHandlerV1(reflector, streams)),
		viewers(grpcreflect.NewHandlerV1Alpha(reflector, streams)),
	}
}

// agentDoors returns the paths for agents, which make their calls through a handler of the services. Those calls count against
// the limits.
func (g *Gateway) agentDoors(calls http.Handler) []door {
	client := inprocess.Client{Handler: calls}
	tools := mcp.Handler(mcp.Config{Services: mcp.NewServices(client, inprocess.URL), Version: g.config.Version, Log: g.config.Logger})
	skills := a2a.New(a2a.Config{
		Services: a2a.Services{
			Runs: switchyardv1connect.NewRunServiceClient(client, inprocess.URL), Workflows: switchyardv1connect.NewWorkflowServiceClient(client, inprocess.URL),
		},
		Version: g.config.Version, Now: g.config.Now, Log: g.config.Logger,
	})
	viewers := func(pattern string, handler http.Handler) door {
		return door{pattern, v1.Role_ROLE_VIEWER, handler}
	}
	return []door{
		viewers(mcp.Path, tools), viewers(mcp.ReadOnlyPath, tools),
		viewers("GET "+a2a.CardPath, skills.Card), viewers(a2a.Path, skills.JSONRPC), viewers("POST /{$}", skills.JSONRPC), viewers(a2a.RESTPath+"/", skills.REST),
	}
}

// newMux returns a mux that enforces the minimum role of each door.
func newMux(doors []door) *http.ServeMux {
	mux := http.NewServeMux()
	for _, d := range doors {
		mux.Handle(d.pattern, auth.Require(d.role, d.handler))
	}
	return mux
}

// Handler serves every path of the gateway: its services to Connect, gRPC and gRPC-Web clients, with the gRPC services for health
// and reflection; their REST paths, with GET /openapi.json; server-sent events; the Model Context Protocol; the Agent2Agent
// protocol; the page for browsers, GET / and /ui/...; sessions under GET /v1/sessions, for which nodes connect to GET /v1/links;
// metrics under GET /metrics. All of them require authentication except GET /healthz (the process is alive) and GET /readyz (it
// can answer calls), which return one word to any caller, and GET /v1/peers, which authenticates the calling gateway by itself.
// gRPC needs an HTTP/2 server; Listen starts one.
func (g *Gateway) Handler() http.Handler {
	services := g.services()
	var called []string
	for _, s := range services {
		called = append(called, strings.Trim(s.path, "/"))
	}
	rpc := newMux(g.rpcDoors(called))
	for _, s := range services {
		rpc.Handle(s.path, s.handler)
	}
	for _, d := range g.agentDoors(rpc) {
		rpc.Handle(d.pattern, auth.Require(d.role, d.handler))
	}
	// Probes and the other doors get an answer even while the limits are reached.
	probes := http.NewServeMux()
	health := health{client: g.config.Client, store: g.config.Store, stopping: g.stopping, log: g.config.Logger}
	probes.HandleFunc("GET /healthz", health.serveAlive)
	probes.HandleFunc("GET /readyz", health.serveReady)
	probes.Handle("GET "+tunnel.PeersPath, g.tunnel.Peers()) // authenticates the caller by itself
	others := newMux(g.doors())
	others.Handle("GET "+tunnel.LinksPath, g.tunnel.Links()) // for nodes; their role includes no other one
	others.Handle("GET /healthz", probes)
	others.Handle("GET /readyz", probes)
	door, err := rest.New(rest.Config{Services: v1.Services(), Calls: rpc, Others: others, MaxBodyBytes: maxMessageBytes})
	if err != nil {
		panic(err) // the annotations in proto contradict one another, which every test of the gateway would show
	}
	lock := auth.Lock{Authenticator: g.config.Authenticator, ActorHeader: names.ActorHeader, OnRefused: g.recorder.NoteRequest}
	streams := g.sse.Wrap(firstOf(rpc, rpc, door))
	page := web.New(web.Config{
		Calls: rpc, Streams: streams, Feeds: g.views, Lock: lock, Bounds: g.bounds, Version: g.config.Version, Now: g.config.Now, Log: g.config.Logger,
		Stopping: g.stopping, KeepAlive: g.sse.KeepAlive, WriteTimeout: g.sse.WriteTimeout,
	})
	bounded := g.bounds.Protect(page.Wrap(lock.Middleware(streams)))
	return edge.GuardHosts(g.config.Hosts, g.recorder.NoteRequest, firstOf(probes, probes, firstOf(others, lock.Middleware(others), bounded)))
}

// firstOf returns a handler that serves a request with matched if the mux has a pattern for it, and with rest otherwise. Unlike a
// catch-all pattern in the mux, it never redirects.
func firstOf(mux *http.ServeMux, matched, rest http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" || path.Clean(r.URL.Path) != r.URL.Path {
			rest.ServeHTTP(w, r)
			return
		}
		matched.ServeHTTP(w, r)
	})
}

func (g *Gateway) recovered(_ context.Context, spec connect.Spec, _ http.Header, cause any) error {
	g.config.Logger.Error("a call panicked", "procedure", spec.Procedure, "panic", cause, "stack", string(debug.Stack()))
	return connect.NewError(connect.CodeInternal, fmt.Errorf("%s panicked; the gateway's log has more", spec.Procedure))
}

// requestValidator checks the rules of requests. It skips definitions and their parts, for which workflows/definition has better
// messages.
type requestValidator struct{ protovalidate.Validator }

// Validate checks m against its rules, except inside definitions.
func (v requestValidator) Validate(m proto.Message, options ...protovalidate.ValidationOption) error {
	return v.Validator.Validate(m, append(options, protovalidate.WithFilter(outsideDefinitions{}))...)
}

type outsideDefinitions struct{}

// ShouldValidate reports whether a field lies outside definitions.
func (outsideDefinitions) ShouldValidate(_ protoreflect.Message, d protoreflect.Descriptor) bool {
	field, ok := d.(protoreflect.FieldDescriptor)
	if !ok || field.Message() == nil {
		return true
	}
	file := field.Message().ParentFile()
	return file != v1.File_switchyard_v1_definition_proto && file != v1.File_switchyard_v1_spec_proto
}
