package a2a

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/a2aproject/a2a-go/v2/a2asrv"

	"switchyard/gateway/inprocess"
)

const (
	// CardPath is the path of the agent card.
	CardPath = a2asrv.WellKnownAgentCardPath
	// Path is the path of the JSON-RPC endpoint.
	Path = "/a2a"
	// RESTPath is the prefix of the REST paths of the protocol.
	RESTPath = "/a2a/v1"
)

// keepAlive is how long a stream may be silent before it sends a comment.
const keepAlive = 15 * time.Second

// Config holds the dependencies of the handlers.
type Config struct {
	// Services are the clients that requests are answered with. Required.
	Services Services
	// Version is the version of the program.
	Version string
	// Now is the clock for status timestamps. Default: time.Now.
	Now func() time.Time
	// Log receives errors of the server itself. Default: discarded.
	Log *slog.Logger
}

// Handlers are the endpoints of the protocol. The caller puts them behind the authentication of the gateway.
type Handlers struct {
	Card, JSONRPC, REST http.Handler
}

// New returns the handlers for a config.
func New(config Config) Handlers {
	if config.Now == nil {
		config.Now = time.Now
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	answers := &agent{Services: config.Services, now: config.Now}
	requests := &a2asrv.InterceptedHandler{Handler: answers, Interceptors: []a2asrv.CallInterceptor{versionCheck{}, refusals{}}, Logger: config.Log}
	options := []a2asrv.TransportOption{
		a2asrv.WithTransportKeepAlive(keepAlive), a2asrv.WithTransportPanicHandler(func(cause any) error {
			config.Log.Error("panic in an A2A request", "panic", cause)
			return errorf(a2a.ErrInternalError, "the request panicked; see the gateway log")
		}),
	}
	return Handlers{
		Card:    protect(answers.serveCard(config.Version)),
		JSONRPC: protect(checkEnvelopes(a2asrv.NewJSONRPCHandler(requests, options...))),
		REST:    protect(http.StripPrefix(RESTPath, checkREST(a2asrv.NewRESTHandler(requests, options...)))),
	}
}

// protect refuses cross-origin requests from browsers and attributes in-process calls to the remote address of the client.
func protect(next http.Handler) http.Handler {
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(inprocess.WithRemoteAddress(r.Context(), r.RemoteAddr)))
	}))
}

// versionCheck refuses requests of other protocol versions. A request without a version counts as the supported one.
type versionCheck struct{}

// Before refuses a request of another protocol version.
func (versionCheck) Before(ctx context.Context, call *a2asrv.CallContext, _ *a2asrv.Request) (context.Context, any, error) {
	asked, _ := call.ServiceParams().Get(a2a.SvcParamVersion)
	for _, version := range asked {
		if version != "" && version != string(a2a.Version) && !strings.HasPrefix(version, string(a2a.Version)+".") {
			return ctx, nil, errorf(a2a.ErrVersionNotSupported, "protocol version %.20q is not supported; this agent supports %s", version, a2a.Version)
		}
	}
	return ctx, nil, nil
}

// After leaves the response unchanged.
func (versionCheck) After(context.Context, *a2asrv.CallContext, *a2asrv.Response) error { return nil }
