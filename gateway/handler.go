package gateway

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"

	"buf.build/go/protovalidate"
	"connectrpc.com/connect"
	"connectrpc.com/validate"

	library "switchyard/activities/environments"
	"switchyard/activities/grants"
	"switchyard/gateway/audit"
	"switchyard/gateway/auth"
	"switchyard/gateway/blobs"
	"switchyard/gateway/edge"
	"switchyard/gateway/environments"
	"switchyard/gateway/export"
	"switchyard/gateway/nodeaccess"
	"switchyard/gateway/nodes"
	"switchyard/gateway/notifications"
	"switchyard/gateway/owners"
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
		connect.WithInterceptors(edge.NewInterceptor(g.config.Logger, g.bounds, g.health().temporalFault), audit.Interceptor{Recorder: g.recorder}, auth.Interceptor{}, edge.Observer(g.config.Observer), validate.NewInterceptor(validate.WithValidator(requestValidator{protovalidate.GlobalValidator}))),
		connect.WithReadMaxBytes(maxMessageBytes),
		connect.WithRecover(g.panicError),
	)
	blobOptions := slices.Concat(options, []connect.HandlerOption{connect.WithReadMaxBytes(blobs.MaxMessageBytes)})
	tasks := tasks.Service{Runs: g.submitter, Lists: tasklist.New(g.index, g.reader, g.config.Nodes, g.config.Now)}
	access := nodeaccess.New(grants.New(g.config.Store), nodeaccess.Attempts{Client: g.config.Client}, g.reader)
	serve := func(path string, handler http.Handler) service {
		return service{path, edge.LimitBody(maxMessageBytes, handler)}
	}
	blobPath, blobHandler := switchyardv1connect.NewBlobServiceHandler(blobs.Service{Store: g.config.Store, Access: access}, blobOptions...)
	return []service{
		serve(switchyardv1connect.NewRunServiceHandler(g.runs, options...)),
		serve(switchyardv1connect.NewTaskServiceHandler(tasks, options...)),
		serve(switchyardv1connect.NewVpsServiceHandler(vps.Service{Runs: g.runs, Tasks: tasks, SSH: vps.Door{Host: g.config.SSHHost, Port: g.config.SSHPort}}, options...)),
		serve(switchyardv1connect.NewEnvironmentServiceHandler(g.environments(), options...)),
		serve(switchyardv1connect.NewWorkflowServiceHandler(g.workflows, options...)),
		serve(switchyardv1connect.NewScheduleServiceHandler(g.schedules, options...)),
		serve(switchyardv1connect.NewNodeServiceHandler(nodes.Service{Registry: g.config.Nodes, Now: g.config.Now}, options...)),
		serve(switchyardv1connect.NewAuthServiceHandler(tokens.Service{Registry: g.config.Tokens, Version: g.config.Version}, options...)),
		serve(switchyardv1connect.NewSecretServiceHandler(g.secrets(), options...)),
		serve(switchyardv1connect.NewNotificationServiceHandler(notifications.Service{Targets: g.config.Targets, Sender: g.config.Sender, Vault: g.config.Vault, ExternalURL: g.config.ExternalURL, Now: g.config.Now}, options...)),
		serve(switchyardv1connect.NewOwnerServiceHandler(owners.Service{Owners: g.submitter.Owners}, options...)),
		serve(switchyardv1connect.NewKeyServiceHandler(sshkeys.Service{Registry: g.keys}, options...)),
		serve(switchyardv1connect.NewExportServiceHandler(g.export(), options...)),
		serve(switchyardv1connect.NewAuditServiceHandler(audit.Service{Store: g.config.Store, Now: g.config.Now}, options...)),
		{blobPath, edge.LimitBody(blobs.MaxMessageBytes, blobHandler)},
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

// export returns the implementation of ExportService.
func (g *Gateway) export() export.Service {
	return export.Service{
		Environments: library.New(g.config.Store), Keys: g.keys, Vault: g.config.Vault, Tokens: g.config.Tokens, Workflows: g.workflows, Library: g.stored,
	}
}

// Handler serves every path of the gateway: its services to Connect, gRPC and gRPC-Web clients, with the gRPC services for health
// and reflection; their REST paths, with GET /openapi.json; server-sent events; the Model Context Protocol; the Agent2Agent
// protocol; the artifacts of tasks; the page for browsers, GET / and /ui/..., and the documentation, GET /docs/...; sessions under GET /v1/sessions, for
// which nodes connect to GET /v1/links; metrics under GET /metrics. All of them require authentication except the documentation;
// GET /healthz (the process is alive) and GET /readyz (it can answer calls, or what is away), which tell any caller no more; and GET
// /v1/peers, which authenticates the calling gateway by itself.
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
	health := g.health()
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
	streams := g.sse.Wrap(dispatchByMux(rpc, rpc, door))
	page := web.New(web.Config{
		Calls: rpc, Streams: dispatchByMux(others, others, streams), Feeds: g.views, Lock: lock, Bounds: g.bounds, FourEyes: g.config.FourEyes, ExternalURL: g.config.ExternalURL, Version: g.config.Version, Now: g.config.Now, Log: g.config.Logger,
		Stopping: g.stopping, KeepAlive: g.sse.KeepAlive, WriteTimeout: g.sse.WriteTimeout,
	})
	bounded := g.bounds.Protect(page.Wrap(lock.Middleware(streams)))
	return edge.GuardHosts(g.config.Hosts, g.recorder.NoteRequest, dispatchByMux(probes, probes, dispatchByMux(others, lock.Middleware(others), bounded)))
}

func (g *Gateway) health() health {
	return health{client: g.config.Client, store: g.config.Store, fault: g.config.TemporalFault, stopping: g.stopping, log: g.config.Logger}
}

func (g *Gateway) panicError(_ context.Context, spec connect.Spec, _ http.Header, cause any) error {
	g.config.Logger.Error("a call panicked", "procedure", spec.Procedure, "panic", cause, "stack", string(debug.Stack()))
	return connect.NewError(connect.CodeInternal, fmt.Errorf("%s panicked; the gateway's log has more", spec.Procedure))
}
