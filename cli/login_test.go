package cli

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"

	"switchyard/activities/store"
	"switchyard/cli/exit"
	"switchyard/gateway/auth"
	"switchyard/gateway/tokens"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

// lockedGateway starts the part of a gateway that people log in to.
func lockedGateway(t *testing.T) (url string, registry *tokens.Registry) {
	t.Helper()
	kept, err := store.Open(t.Context(), "mem://")
	must(t, err)
	registry = tokens.NewRegistry(kept, time.Now)
	authenticator := tokens.NewAuthenticator(registry, slog.New(slog.DiscardHandler))
	mux := http.NewServeMux()
	mux.Handle(switchyardv1connect.NewAuthServiceHandler(tokens.Service{Registry: registry}, connect.WithInterceptors(auth.Interceptor{})))
	server := httptest.NewUnstartedServer(auth.Lock{Authenticator: authenticator}.Middleware(mux))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(func() {
		server.Close()
		authenticator.Close()
		must(t, kept.Close())
	})
	return server.URL, registry
}

func TestLoginToCreateAndRevokeTokens(t *testing.T) {
	url, registry := lockedGateway(t)
	first, err := registry.CreateFirst(t.Context())
	must(t, err)
	env := map[string]string{"HOME": t.TempDir()}
	on := func(env map[string]string, stdin string, args ...string) result {
		t.Helper()
		got := runWith(t, env, stdin, append(args, "--gateway", url)...)
		if strings.Contains(got.stderr, first) {
			t.Errorf("%v prints the token: %s", args, got.stderr)
		}
		return got
	}
	on(env, "", "whoami").ends(t, exit.CodeNotAllowed, "switchyard login")
	on(env, "sy_wrong_token", "login").ends(t, exit.CodeNotAllowed, "not known")
	on(env, "\n", "login").ends(t, exit.CodeUsage, "")
	on(env, first+"\n", "login").ends(t, exit.CodeDone, "as admin, role admin")
	if got := on(env, "", "whoami"); got.code != exit.CodeDone || got.stdout != "admin, role admin\n" {
		t.Errorf("%+v", got)
	}
	made := on(env, "", "tokens", "create", "--name", "ann", "--role", "operator", "--expires", "30d")
	if made.code != exit.CodeDone || !strings.HasPrefix(made.stdout, tokens.Prefix) || strings.Count(made.stdout, "\n") != 1 || !strings.Contains(made.stderr, "of ann, role operator, expires ") {
		t.Fatalf("%+v", made)
	}
	ann := map[string]string{"HOME": t.TempDir(), "SWITCHYARD_TOKEN": strings.TrimSpace(made.stdout)}
	on(ann, "", "whoami", "-o", "json").prints(t, exit.CodeDone, `"name": "ann"`)
	on(ann, "", "tokens", "list").ends(t, exit.CodeNotAllowed, "needs the role admin; ann has the role operator")
	file := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(file, []byte(made.stdout), 0o600))
	if got := on(env, "", "whoami", "--token-file", file); got.stdout == "" || !strings.HasPrefix(got.stdout, "ann, ") {
		t.Errorf("a file goes before what login has kept: %+v", got)
	}
	must(t, os.Chmod(file, 0o644))
	on(env, "", "whoami", "--token-file", file).ends(t, exit.CodeUsage, "chmod 600")
	var list struct {
		Items []struct{ ID, Name, State, LastUsedAt string }
	}
	got := on(env, "", "tokens", "list", "-o", "json")
	must(t, json.Unmarshal([]byte(got.stdout), &list))
	if len(list.Items) != 2 || list.Items[1].Name != "ann" || list.Items[1].State != v1.TokenActive {
		t.Errorf("%+v", list)
	}
	on(env, "", "tokens", "revoke", "ann").ends(t, exit.CodeDone, "is revoked")
	on(env, "", "tokens", "revoke", "first").ends(t, exit.CodeNotDone, "last active admin token")
	on(env, "", "logout").ends(t, exit.CodeDone, "")
	on(env, "", "whoami").ends(t, exit.CodeNotAllowed, "")
	on(env, "", "logout").ends(t, exit.CodeUsage, "")
}

func TestTokensCreateChecksItsFlags(t *testing.T) {
	for says, args := range map[string][]string{
		"--role is missing":             {"--name", "ann"},
		"--name is missing":             {"--role", "user"},
		"it must be a time such as 12h": {"--name", "ann", "--role", "user", "--expires", "0d"},
		"30d, or never":                 {"--name", "ann", "--role", "user", "--expires", "tomorrow"},
		"user, operator, admin or node": {"--name", "ann", "--role", "root"},
	} {
		run(t, append([]string{"tokens", "create"}, args...)...).ends(t, exit.CodeUsage, says)
	}
	if got := run(t, "whoami", "--gateway", "http://ann:secret@yard:7280"); got.code != exit.CodeUsage || strings.Contains(got.stderr, "secret") {
		t.Errorf("a password in the URL: %+v", got)
	}
}

// TestTokenStaysWithItsGateway checks that a redirect to another host does not receive the token.
func TestTokenStaysWithItsGateway(t *testing.T) {
	leaked := make(chan string, 8)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { leaked <- r.Header.Get("Authorization") }))
	defer other.Close()
	gateway := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked <- r.Header.Get("Authorization")
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	gateway.Config.Protocols = new(http.Protocols)
	gateway.Config.Protocols.SetUnencryptedHTTP2(true)
	gateway.Start()
	defer gateway.Close()
	runWith(t, map[string]string{"SWITCHYARD_TOKEN": "sy_a_b"}, "", "whoami", "--gateway", gateway.URL)
	if got := <-leaked; got != "Bearer sy_a_b" {
		t.Errorf("the gateway got %q", got)
	}
	select {
	case got := <-leaked:
		if got != "" {
			t.Errorf("the other host got %q", got)
		}
	default: // the client follows no redirect of a call
	}
}

func TestIssuerNeedsAllItsFlags(t *testing.T) {
	for says, args := range map[string][]string{
		"--oidc-audience is missing": {"--auth", "tokens", "--oidc-issuer", "https://id.example"},
		"--oidc-issuer is missing":   {"--auth", "tokens", "--oidc-audience", "switchyard"},
		"must be an https URL":       {"--auth", "tokens", "--oidc-audience", "switchyard", "--oidc-issuer", "http://id.example"},
		"without --auth tokens":      {"--oidc-audience", "switchyard", "--oidc-issuer", "https://id.example"},
		"callers have no role":       {"--approve-runs-of", "user"},
	} {
		run(t, append([]string{"gateway"}, args...)...).ends(t, exit.CodeUsage, says)
	}
}

func TestAddressForOthersNeedsAuthentication(t *testing.T) {
	for address, refused := range map[string]bool{
		"0.0.0.0:7280": true, "10.0.0.1:7280": true, "yard:7280": true, "[::]:7280": true,
		"127.0.0.1:7280": false, "localhost:7280": false, "[::1]:7280": false, ":7280": false,
	} {
		if isLoopback(address) == refused {
			t.Errorf("%s counts as loopback: %v", address, !refused)
		}
		if !refused {
			continue
		}
		run(t, "gateway", "--address", address).ends(t, exit.CodeUsage, "--auth tokens")
	}
}
