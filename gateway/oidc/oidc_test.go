package oidc

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/go-jose/go-jose/v4"

	"switchyard/dev/testneeds"
	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// issuer serves its configuration and its keys.
type issuer struct {
	*httptest.Server

	mu   sync.Mutex
	keys map[string]*ecdsa.PrivateKey // by id
	away bool
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{keys: map[string]*ecdsa.PrivateKey{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		i.answer(w, map[string]any{
			"issuer": i.URL, "jwks_uri": i.URL + "/keys", "authorization_endpoint": i.URL + "/auth", "token_endpoint": i.URL + "/token",
			"id_token_signing_alg_values_supported": []string{"ES256", "HS256", "none"},
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		set := jose.JSONWebKeySet{}
		i.mu.Lock()
		for id, key := range i.keys {
			set.Keys = append(set.Keys, jose.JSONWebKey{Key: key.Public(), KeyID: id, Algorithm: "ES256", Use: "sig"})
		}
		i.mu.Unlock()
		i.answer(w, set)
	})
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	i.rotate(t, "first")
	return i
}

func (i *issuer) answer(w http.ResponseWriter, value any) {
	i.mu.Lock()
	away := i.away
	i.mu.Unlock()
	if away {
		http.Error(w, "away", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

// rotate replaces the keys with a new one.
func (i *issuer) rotate(t *testing.T, id string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = map[string]*ecdsa.PrivateKey{id: key}
}

func (i *issuer) setAway(away bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.away = away
}

// sign returns a token with the given claims, signed with the issuer's key.
func (i *issuer) sign(t *testing.T, claims map[string]any) string {
	t.Helper()
	i.mu.Lock()
	defer i.mu.Unlock()
	for id, key := range i.keys {
		return signWith(t, jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: id}}, claims)
	}
	return ""
}

func signWith(t *testing.T, key jose.SigningKey, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(key, nil)
	if err != nil {
		t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// claims returns the claims of a valid token with some of them changed.
func (i *issuer) claims(changes map[string]any) map[string]any {
	all := map[string]any{
		"iss": i.URL, "aud": "switchyard", "sub": "u-17", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(), "roles": []string{"user", "operator"},
	}
	for name, value := range changes {
		if value == nil {
			delete(all, name)
			continue
		}
		all[name] = value
	}
	return all
}

func newAuthenticator(t *testing.T, i *issuer, change func(*Config)) *Authenticator {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c := Config{Issuer: i.URL, Audience: "switchyard", Client: &http.Client{Transport: transport}}
	if change != nil {
		change(&c)
	}
	a, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestAuthenticatorAcceptsOnlyValidTokens(t *testing.T) {
	i, other := newIssuer(t), newIssuer(t)
	a := newAuthenticator(t, i, nil)
	secret := jose.SigningKey{Algorithm: jose.HS256, Key: []byte(strings.Repeat("k", 32))}
	unsigned := "eyJhbGciOiJub25lIn0." + strings.Split(i.sign(t, i.claims(nil)), ".")[1] + "."
	good := i.sign(t, i.claims(nil))
	hour := time.Now().Add(-time.Hour)
	for name, test := range map[string]struct {
		bearer string
		code   connect.Code
		says   string
	}{
		"a good one":             {good, 0, ""},
		"expired for an hour":    {i.sign(t, i.claims(map[string]any{"exp": hour.Unix()})), connect.CodeUnauthenticated, "expired at " + hour.UTC().Format(time.RFC3339) + ", and the clock of the gateway shows"},
		"not valid for an hour":  {i.sign(t, i.claims(map[string]any{"nbf": time.Now().Add(time.Hour).Unix()})), connect.CodeUnauthenticated, "not valid yet"},
		"of another issuer":      {other.sign(t, other.claims(nil)), connect.CodeUnauthenticated, "the token has no valid signature of"},
		"signed by another":      {other.sign(t, i.claims(nil)), connect.CodeUnauthenticated, "signature"},
		"for another audience":   {i.sign(t, i.claims(map[string]any{"aud": "grafana"})), connect.CodeUnauthenticated, "not for the audience switchyard"},
		"for several, of us":     {i.sign(t, i.claims(map[string]any{"aud": []string{"switchyard", "grafana"}, "azp": "switchyard"})), 0, ""},
		"for several, of others": {i.sign(t, i.claims(map[string]any{"aud": []string{"switchyard", "grafana"}, "azp": "grafana"})), connect.CodeUnauthenticated, `its azp is "grafana"`},
		"for several, of no one": {i.sign(t, i.claims(map[string]any{"aud": []string{"switchyard", "grafana"}})), connect.CodeUnauthenticated, "its azp is"},
		"a shared secret":        {signWith(t, secret, i.claims(nil)), connect.CodeUnauthenticated, "unsupported algorithm"},
		"no signature":           {unsigned, connect.CodeUnauthenticated, ""},
		"changed":                {good[:len(good)-4] + "AAAA", connect.CodeUnauthenticated, "signature"},
		"no role":                {i.sign(t, i.claims(map[string]any{"roles": nil})), connect.CodePermissionDenied, "claim roles of the token of u-17"},
		"the role of a node":     {i.sign(t, i.claims(map[string]any{"roles": []string{"node"}})), connect.CodePermissionDenied, "contains none of the roles"},
		"a name with a quote":    {i.sign(t, i.claims(map[string]any{"sub": "u' OR '1"})), connect.CodePermissionDenied, "must be a name"},
		"unverified":             {i.sign(t, i.claims(map[string]any{"sub": "ann (unverified)"})), connect.CodePermissionDenied, "must be a name"},
		"the name of schedules":  {i.sign(t, i.claims(map[string]any{"sub": "schedule"})), connect.CodePermissionDenied, "is reserved"},
		"garbage":                {"a.b.c", connect.CodeUnauthenticated, "not known"},
		"no token":               {"nonsense", connect.CodeUnauthenticated, "not known"},
	} {
		p, err := a.Authenticate(t.Context(), test.bearer)
		if test.code == 0 {
			if err != nil || p.Name != "u-17" || p.Role != v1.Role_ROLE_OPERATOR || p.Kind != auth.KindOIDC || p.ExpiresAt.IsZero() {
				t.Errorf("%s: %+v, %v", name, p, err)
			}
			continue
		}
		if err == nil || connect.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
		if err != nil && strings.Contains(err.Error(), test.bearer) {
			t.Errorf("%s: the error has the token: %v", name, err)
		}
	}
}

func TestClaimsAreFoundInNestedObjects(t *testing.T) {
	i := newIssuer(t)
	for name, test := range map[string]struct {
		roles, names string
		claims       map[string]any
		name         string
		role         v1.Role
	}{
		"a text":          {"", "", map[string]any{"roles": "admin"}, "u-17", v1.Role_ROLE_ADMIN},
		"several words":   {"scope", "", map[string]any{"scope": "openid viewer user"}, "u-17", v1.Role_ROLE_USER},
		"in an object":    {"realm_access.roles", "email", map[string]any{"realm_access": map[string]any{"roles": []string{"offline_access", "viewer"}}, "email": "ann@example.com"}, "ann@example.com", v1.Role_ROLE_VIEWER},
		"a URL as a name": {"https://yard.example/roles", "", map[string]any{"https://yard.example/roles": []string{"operator"}}, "u-17", v1.Role_ROLE_OPERATOR},
	} {
		a := newAuthenticator(t, i, func(c *Config) { c.RolesClaim, c.NameClaim = test.roles, test.names })
		p, err := a.Authenticate(t.Context(), i.sign(t, i.claims(test.claims)))
		if err != nil || p.Name != test.name || p.Role != test.role {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
}

// TestAuthenticatorToleratesAnUnreachableIssuer starts while the issuer is unreachable, and later rotates its keys.
func TestAuthenticatorToleratesAnUnreachableIssuer(t *testing.T) {
	i := newIssuer(t)
	i.setAway(true)
	var mu sync.Mutex
	now := time.Now()
	a := newAuthenticator(t, i, func(c *Config) {
		c.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		}
	})
	token := i.sign(t, i.claims(nil))
	if _, err := a.Authenticate(t.Context(), token); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("while the issuer is away: %v", err)
	}
	i.setAway(false)
	if _, err := a.Authenticate(t.Context(), token); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("within %v it is asked again: %v", retryAfter, err)
	}
	mu.Lock()
	now = now.Add(retryAfter)
	mu.Unlock()
	if _, err := a.Authenticate(t.Context(), token); err != nil {
		t.Errorf("once the issuer is back: %v", err)
	}
	i.rotate(t, "second")
	if _, err := a.Authenticate(t.Context(), i.sign(t, i.claims(nil))); err != nil {
		t.Errorf("with new keys: %v", err)
	}
	i.rotate(t, "third")
	i.setAway(true)
	if _, err := a.Authenticate(t.Context(), i.sign(t, i.claims(nil))); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("with keys that cannot be read: %v", err)
	}
}

func TestConfigNamesWhatIsMissing(t *testing.T) {
	if _, err := New(Config{}); err == nil || !strings.Contains(err.Error(), "Issuer is missing") || !strings.Contains(err.Error(), "Audience is missing") {
		t.Error(err)
	}
}
