package mcp

import (
	"context"
	"fmt"
	"net/http"

	sdkauth "github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"switchyard/gateway/auth"
	"switchyard/gateway/inprocess"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// Path is the endpoint of a gateway.
	Path = "/mcp"
	// ReadOnlyPath is the endpoint without the tools that change something.
	ReadOnlyPath = "/mcp/readonly"
)

// Handler serves streamable HTTP without sessions, so any gateway of a deployment can answer any request. The caller puts it
// behind the authentication of a gateway. A caller with read access only gets no tools that change something.
func Handler(config Config) http.Handler {
	all := New(config)
	config.ReadOnly = true
	reading := New(config)
	streamable := sdk.NewStreamableHTTPHandler(func(r *http.Request) *sdk.Server {
		if r.URL.Path == ReadOnlyPath || !auth.From(r.Context()).Role.Includes(v1.Role_ROLE_USER) {
			return reading.served
		}
		return all.served
	}, &sdk.StreamableHTTPOptions{Stateless: true, PropagateRequestCancellation: true, Logger: config.Log})
	identified := sdkauth.RequireBearerToken(tokenInfo, &sdkauth.RequireBearerTokenOptions{AllowMissingExpiration: true})(streamable)
	return http.NewCrossOriginProtection().Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx := inprocess.WithRemoteAddress(r.Context(), r.RemoteAddr)
		r = r.WithContext(context.WithValue(ctx, clientKey{}, ctx))
		if auth.From(ctx).IsVerified() {
			identified.ServeHTTP(w, r)
			return
		}
		streamable.ServeHTTP(w, r)
	}))
}

// tokenInfo returns the authenticated principal in the form that the protocol library expects.
func tokenInfo(ctx context.Context, _ string, _ *http.Request) (*sdkauth.TokenInfo, error) {
	p := auth.From(ctx)
	if !p.IsVerified() {
		return nil, fmt.Errorf("%w: the caller is not authenticated", sdkauth.ErrInvalidToken)
	}
	return &sdkauth.TokenInfo{UserID: p.Kind + ":" + p.ID + ":" + p.Name, Expiration: p.ExpiresAt}, nil
}

// clientKey is the context key of the context of a client's HTTP request.
type clientKey struct{}

// withClient returns a context that also ends with the HTTP request of its client, because the context of a call outlives
// the request. The caller must call release.
func withClient(ctx context.Context) (ended context.Context, release func()) {
	client, ok := ctx.Value(clientKey{}).(context.Context)
	if !ok {
		return ctx, func() {}
	}
	ended, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(client, func() { cancel(context.Cause(client)) })
	return ended, func() {
		stop()
		cancel(context.Canceled)
	}
}
