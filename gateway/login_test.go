package gateway

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"switchyard/activities/secrets/vault"
	"switchyard/gateway/tokens"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// startLocked starts a gateway that requires tokens, with the store in dir. Several gateways may share a store.
func startLocked(t *testing.T, dir string, changes ...func(*Config)) *fixture {
	t.Helper()
	kept := openStore(t, dir)
	registry := tokens.NewRegistry(kept, time.Now)
	authenticator := tokens.NewAuthenticator(registry, slog.New(slog.DiscardHandler))
	t.Cleanup(authenticator.Close)
	config := Config{Store: kept, Tokens: registry, Authenticator: authenticator, Vault: vault.New(kept, dir+".secrets-key", time.Now)}
	for _, change := range changes {
		change(&config)
	}
	return startConfigured(t, dir, config)
}

// token creates a token with a name and a role.
func (f *fixture) token(t *testing.T, name, role string) (secret string, created *v1.Token) {
	t.Helper()
	secret, created, err := f.config.Tokens.Create(t.Context(), &v1.Token{Name: name, Role: role}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return secret, created
}

// nodeToken creates a token for a node.
func (f *fixture) nodeToken(t *testing.T, node string) string {
	t.Helper()
	secret, _, err := f.config.Tokens.Create(t.Context(), &v1.Token{Name: "worker-" + node, Role: v1.RoleNode, Node: node}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// dialAs returns a client with a token.
func (f *fixture) dialAs(t *testing.T, token string) switchyardv1connect.RunServiceClient {
	t.Helper()
	return f.dial(t, connect.WithInterceptors(bearer(token)))
}

// bearer adds a token to each call.
type bearer string

func (b bearer) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		req.Header().Set("Authorization", "Bearer "+string(b))
		return next(ctx, req)
	}
}

func (b bearer) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		conn := next(ctx, spec)
		conn.RequestHeader().Set("Authorization", "Bearer "+string(b))
		return conn
	}
}

func (b bearer) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

// TestStreamEndsWhenItsTokenIsRevoked revokes a token at one gateway that a stream at another gateway uses.
func TestStreamEndsWhenItsTokenIsRevoked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, other := startLocked(t, dir), startLocked(t, dir)
	secret, created := f.token(t, "ann", v1.RoleOperator)
	f.token(t, "root", v1.RoleAdmin)
	f.client = f.dial(t, connect.WithInterceptors(bearer(secret)))
	id := f.submit(t, "revoked-stream")
	stream, err := other.dial(t, connect.WithInterceptors(bearer(secret))).WatchRun(t.Context(), connect.NewRequest(&v1.WatchRunRequest{Id: id}))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	if !stream.Receive() {
		t.Fatal(stream.Err())
	}
	events, err := http.NewRequestWithContext(t.Context(), http.MethodGet, other.server.URL()+"/v1/runs/"+id+"/events?follow=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	events.Header.Set("Authorization", "Bearer "+secret)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	followed, err := (&http.Client{Transport: transport}).Do(events)
	if err != nil || followed.StatusCode != http.StatusOK {
		t.Fatal(followed, err)
	}
	defer followed.Body.Close()
	if _, err := f.config.Tokens.Revoke(t.Context(), created.GetId(), "root"); err != nil {
		t.Fatal(err)
	}
	for stream.Receive() {
	}
	if err := stream.Err(); connect.CodeOf(err) != connect.CodeUnauthenticated || !strings.Contains(err.Error(), "was revoked") {
		t.Errorf("the stream of Connect ended with %v", err)
	}
	if text, err := io.ReadAll(followed.Body); err != nil || !strings.Contains(string(text), "was revoked") {
		t.Errorf("%v: the stream of events ended with %s", err, text)
	}
	if _, err := other.dial(t, connect.WithInterceptors(bearer(secret))).GetRun(t.Context(), connect.NewRequest(&v1.GetRunRequest{Id: id})); connect.CodeOf(err) != connect.CodeUnauthenticated {
		t.Error(err)
	}
}

func TestTokenLifecycleOverREST(t *testing.T) {
	t.Parallel()
	f := startLocked(t, t.TempDir())
	admin, _ := f.token(t, "root", v1.RoleAdmin)
	user, _ := f.token(t, "ann", v1.RoleUser)
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	send := func(token, method, path, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, f.server.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := (&http.Client{Transport: transport}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(text)
	}
	for _, test := range []struct {
		token, method, path, body string
		status                    int
		says                      string
	}{
		{"", http.MethodGet, "/v1/whoami", "", 401, "switchyard login"},
		{user, http.MethodGet, "/v1/whoami", "", 200, `"name":"ann","role":"user"`},
		{user, http.MethodPost, "/v1/tokens", `{"name":"eve","role":"admin"}`, 403, "CreateToken needs the role admin; ann has the role user"},
		{user, http.MethodGet, "/v1/tokens", "", 403, "needs the role admin"},
		{admin, http.MethodPost, "/v1/tokens", `{"name":"eve","role":"root"}`, 400, "role"},
		{admin, http.MethodPost, "/v1/tokens", `{"name":"eve (unverified)","role":"user"}`, 400, "name"},
		{admin, http.MethodPost, "/v1/tokens", `{"name":"eve","role":"user","expiresIn":"3600s"}`, 200, `"secret":"sy_`},
		{admin, http.MethodGet, "/v1/tokens", "", 200, `"name":"eve"`},
		{admin, http.MethodDelete, "/v1/tokens/eve", "", 200, `"revokedBy":"root"`},
		{admin, http.MethodDelete, "/v1/tokens/eve", "", 404, "no token"},
		{"", http.MethodGet, "/healthz", "", 200, "ok"},
		{"", http.MethodGet, "/openapi.json", "", 401, "switchyard login"},
		{user, http.MethodGet, "/openapi.json", "", 200, "openapi"},
	} {
		status, text := send(test.token, test.method, test.path, test.body)
		if status != test.status || !strings.Contains(strings.ReplaceAll(text, ": ", ":"), strings.ReplaceAll(test.says, ": ", ":")) {
			t.Errorf("%s %s: %d %s", test.method, test.path, status, text)
		}
	}
}
