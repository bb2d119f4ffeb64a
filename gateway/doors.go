package gateway

import (
	"net/http"
	"path"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"connectrpc.com/grpcreflect"

	"switchyard/activities/metrics"
	"switchyard/gateway/a2a"
	"switchyard/gateway/auth"
	"switchyard/gateway/edge"
	"switchyard/gateway/inprocess"
	"switchyard/gateway/mcp"
	"switchyard/gateway/openapi"
	"switchyard/gateway/rundetails"
	"switchyard/gateway/tunnel"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

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
		{"GET /v1" + rundetails.ArtifactPath, v1.Role_ROLE_VIEWER, http.HandlerFunc(g.runs.ServeArtifact)},
		{"GET " + rundetails.ArtifactPath, v1.Role_ROLE_VIEWER, http.HandlerFunc(g.runs.ServeArtifact)},
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
	streams := connect.WithInterceptors(edge.NewInterceptor(g.config.Logger, g.bounds, g.health().temporalFault))
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

// dispatchByMux returns a handler that serves a request with matched if the mux has a pattern for it, and with rest otherwise.
// Unlike a catch-all pattern in the mux, it never redirects.
func dispatchByMux(mux *http.ServeMux, matched, rest http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, pattern := mux.Handler(r); pattern == "" || path.Clean(r.URL.Path) != r.URL.Path {
			rest.ServeHTTP(w, r)
			return
		}
		matched.ServeHTTP(w, r)
	})
}
