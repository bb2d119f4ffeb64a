package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"
	"unicode"

	"connectrpc.com/authn"
	"connectrpc.com/connect"
	gooidc "github.com/coreos/go-oidc/v3/oidc"

	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// DefaultRolesClaim and DefaultNameClaim are the claims that are read where no others are named. The subject is the one
	// claim that an issuer gives to no second person.
	DefaultRolesClaim, DefaultNameClaim = "roles", "sub"
	// issuerTimeout bounds a request to the issuer, and retryAfter is the shortest time between two tries to find its keys.
	issuerTimeout, retryAfter = 10 * time.Second, 5 * time.Second
	// maxName bounds the name of a person, in bytes.
	maxName = 200
)

// algorithms are those by which an issuer may sign: none with a secret that is shared, and not none.
var algorithms = []string{
	gooidc.RS256, gooidc.RS384, gooidc.RS512, gooidc.ES256, gooidc.ES384, gooidc.ES512, gooidc.PS256, gooidc.PS384, gooidc.PS512, gooidc.EdDSA,
}

// Config says whose tokens are accepted, and for whom.
type Config struct {
	// Issuer is the URL of the issuer, as its tokens have it.
	Issuer string
	// Audience is who the tokens must be for. A token for several must name it as the party that asked for it (azp).
	Audience string
	// RolesClaim is the claim with the roles, a text or a list of texts; dots lead into objects. Default: DefaultRolesClaim.
	RolesClaim string
	// NameClaim is the claim with the name that runs and the audit show. Default: DefaultNameClaim.
	NameClaim string
	// Client reaches the issuer. Default: http.DefaultClient.
	Client *http.Client
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Logger takes what an operator should know. Default: nothing is logged.
	Logger *slog.Logger
}

// WithDefaults returns c with what is missing filled in.
func (c Config) WithDefaults() Config {
	if c.RolesClaim == "" {
		c.RolesClaim = DefaultRolesClaim
	}
	if c.NameClaim == "" {
		c.NameClaim = DefaultNameClaim
	}
	if c.Client == nil {
		c.Client = http.DefaultClient
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate reports what is wrong with c.
func (c Config) Validate() error {
	var errs []error
	if c.Issuer == "" {
		errs = append(errs, errors.New("oidc: Issuer is missing"))
	}
	if c.Audience == "" {
		errs = append(errs, errors.New("oidc: Audience is missing"))
	}
	return errors.Join(errs...)
}

// Authenticator finds out who has a token of an issuer. It is safe for concurrent use. The issuer may be away when it is made:
// it is asked for its keys when the first token comes.
type Authenticator struct {
	config Config

	mu       sync.Mutex
	verifier *gooidc.IDTokenVerifier // nil until the issuer has been found
	tried    time.Time
	failure  error // of the last try
}

var _ auth.Authenticator = (*Authenticator)(nil)

// New returns an authenticator.
func New(c Config) (*Authenticator, error) {
	c = c.WithDefaults()
	return &Authenticator{config: c}, c.Validate()
}

// Authenticate returns who has a token.
func (a *Authenticator) Authenticate(ctx context.Context, bearer string) (*auth.Principal, error) {
	if strings.Count(bearer, ".") != 2 {
		return nil, authn.Errorf("the token is not known to this gateway")
	}
	verifier, err := a.find()
	if err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, fmt.Errorf("the issuer %s cannot be asked for its keys now: %w", a.config.Issuer, err))
	}
	token, err := verifier.Verify(gooidc.ClientContext(ctx, a.config.Client), bearer)
	if err != nil {
		return nil, a.refusal(err)
	}
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return nil, authn.Errorf("the claims of the token are no JSON object")
	}
	if azp, _ := claims["azp"].(string); len(token.Audience) > 1 && azp != a.config.Audience {
		return nil, authn.Errorf("the token is for %d audiences, and %s did not ask for it: its azp is %q", len(token.Audience), a.config.Audience, azp)
	}
	return a.principal(claims, token)
}

// principal returns whom the claims of a verified token name.
func (a *Authenticator) principal(claims map[string]any, token *gooidc.IDToken) (*auth.Principal, error) {
	name, _ := claimAt(claims, a.config.NameClaim).(string)
	if name == "" || len(name) > maxName || strings.ContainsAny(name, "'`\"\\?()") || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return nil, connect.NewError(connect.CodePermissionDenied, fmt.Errorf("the claim %s of the token holds no name: it must be a text of at most %d bytes without quotes, parentheses, backslash and question mark", a.config.NameClaim, maxName))
	}
	role := strongest(claimAt(claims, a.config.RolesClaim))
	if role == v1.Role_ROLE_UNSPECIFIED {
		return nil, connect.NewError(connect.CodePermissionDenied, fmt.Errorf("the claim %s of the token of %s names none of the roles viewer, user, operator and admin", a.config.RolesClaim, name))
	}
	return &auth.Principal{Name: name, Role: role, Kind: auth.KindOIDC, ID: token.Subject, ExpiresAt: token.Expiry}, nil
}

// strongest returns the strongest role of people that a claim names.
func strongest(claim any) v1.Role {
	var words []string
	switch claim := claim.(type) {
	case string:
		words = strings.Fields(claim)
	case []any:
		for _, item := range claim {
			if word, ok := item.(string); ok {
				words = append(words, word)
			}
		}
	}
	best := v1.Role_ROLE_UNSPECIFIED
	for _, word := range words {
		if role := v1.ParseRole(word); role != v1.Role_ROLE_NODE && role > best {
			best = role
		}
	}
	return best
}

// claimAt returns the claim of a name, whose dots lead into objects, or nil if there is none. A claim with the whole name, as
// issuers give that make it a URL, goes before.
func claimAt(claims map[string]any, name string) any {
	if claim, ok := claims[name]; ok {
		return claim
	}
	first, rest, nested := strings.Cut(name, ".")
	if object, ok := claims[first].(map[string]any); nested && ok {
		return claimAt(object, rest)
	}
	return nil
}

// refusal returns why a token does not count. It has no part of the token.
func (a *Authenticator) refusal(err error) error {
	now := a.config.Now().UTC().Format(time.RFC3339)
	if expired, ok := errors.AsType[*gooidc.TokenExpiredError](err); ok {
		return authn.Errorf("the token expired at %s, and the clock of the gateway shows %s; get another one from %s", expired.Expiry.UTC().Format(time.RFC3339), now, a.config.Issuer)
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "fetching keys"):
		a.config.Logger.Warn("the keys of the issuer cannot be read", "issuer", a.config.Issuer, "error", err)
		return connect.NewError(connect.CodeUnavailable, fmt.Errorf("the issuer %s cannot be asked for its keys now", a.config.Issuer))
	case strings.Contains(text, "nbf"):
		return authn.Errorf("the token is not valid yet, and the clock of the gateway shows %s", now)
	case strings.Contains(text, "audience"):
		return authn.Errorf("the token is not for the audience %s", a.config.Audience)
	case strings.Contains(text, "issued by a different provider"):
		return authn.Errorf("the token is not of the issuer %s", a.config.Issuer)
	case strings.Contains(text, "unsupported algorithm"), strings.Contains(text, "unexpected signature algorithm"):
		return authn.Errorf("the token is signed by an algorithm that proves nothing here; the issuer has to sign with RSA, ECDSA or Ed25519")
	case isMalformed(text):
		return authn.Errorf("the token is not known to this gateway")
	}
	return authn.Errorf("the signature of the token is not one of %s", a.config.Issuer)
}

func isMalformed(text string) bool {
	return strings.Contains(text, "malformed jwt") || strings.Contains(text, "failed to unmarshal claims")
}

// find returns the verifier of the issuer's tokens, for which it looks at the issuer's configuration once.
func (a *Authenticator) find() (*gooidc.IDTokenVerifier, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.config.Now()
	if a.verifier != nil {
		return a.verifier, nil
	}
	if a.failure != nil && now.Sub(a.tried) < retryAfter {
		return nil, a.failure
	}
	a.tried = now
	// The keys are read with this context for as long as the process lives.
	provider, err := gooidc.NewProvider(gooidc.ClientContext(context.Background(), a.bounded()), a.config.Issuer)
	if err != nil {
		a.failure = withoutBody(err)
		a.config.Logger.Warn("the issuer of tokens cannot be reached", "issuer", a.config.Issuer, "error", a.failure)
		return nil, a.failure
	}
	a.verifier, a.failure = provider.Verifier(&gooidc.Config{ClientID: a.config.Audience, SupportedSigningAlgs: algorithms, Now: a.config.Now}), nil
	return a.verifier, nil
}

// bounded returns the client with a bound for each request.
func (a *Authenticator) bounded() *http.Client {
	c := *a.config.Client
	c.Timeout = issuerTimeout
	return &c
}

// maxCause bounds what an error repeats of the answer of an issuer, in bytes.
const maxCause = 200

func withoutBody(err error) error {
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return errors.New("its configuration is no JSON")
	}
	text := err.Error()
	if len(text) > maxCause {
		text = strings.ToValidUTF8(text[:maxCause], "") + "..."
	}
	return errors.New(text)
}
