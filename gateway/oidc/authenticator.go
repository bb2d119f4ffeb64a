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
	// DefaultRolesClaim and DefaultNameClaim are the claims that are read by default. The subject is the only claim that
	// issuers guarantee to be unique per user.
	DefaultRolesClaim, DefaultNameClaim = "roles", "sub"
	// issuerTimeout bounds a request to the issuer. retryAfter is the shortest time between two attempts to get its keys.
	issuerTimeout, retryAfter = 10 * time.Second, 5 * time.Second
	// maxName bounds the name of a user in bytes.
	maxName = 200
)

// algorithms are the accepted signature algorithms: no shared secrets, and not "none".
var algorithms = []string{
	gooidc.RS256, gooidc.RS384, gooidc.RS512, gooidc.ES256, gooidc.ES384, gooidc.ES512, gooidc.PS256, gooidc.PS384, gooidc.PS512, gooidc.EdDSA,
}

// Config determines which tokens are accepted.
type Config struct {
	// Issuer is the URL of the issuer, exactly as in its tokens.
	Issuer string
	// Audience is the audience that tokens must have. A token with several audiences must name it as the authorised party
	// (azp).
	Audience string
	// RolesClaim is the claim with the roles, a string or a list of strings. Dots select nested objects. Default:
	// DefaultRolesClaim.
	RolesClaim string
	// NameClaim is the claim with the name for runs and the audit. Default: DefaultNameClaim.
	NameClaim string
	// Client is the HTTP client for the issuer. Default: http.DefaultClient.
	Client *http.Client
	// Now is the clock. Default: time.Now.
	Now func() time.Time
	// Logger receives messages for operators. Default: messages are discarded.
	Logger *slog.Logger
}

// WithDefaults returns a copy of c with default values for unset fields.
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

// Validate returns an error that lists every invalid field of c.
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

// Authenticator authenticates the holders of an issuer's tokens. It is safe for concurrent use. The issuer may be unreachable
// at the start: its keys are fetched with the first token.
type Authenticator struct {
	config Config

	mu       sync.Mutex
	verifier *gooidc.IDTokenVerifier // nil until the issuer has been reached
	tried    time.Time
	failure  error // error of the last attempt
}

var _ auth.Authenticator = (*Authenticator)(nil)

// New returns an authenticator.
func New(c Config) (*Authenticator, error) {
	c = c.WithDefaults()
	return &Authenticator{config: c}, c.Validate()
}

// Authenticate returns the principal of a token.
func (a *Authenticator) Authenticate(ctx context.Context, bearer string) (*auth.Principal, error) {
	if strings.Count(bearer, ".") != 2 {
		return nil, authn.Errorf("the token is not known to this gateway")
	}
	verifier, err := a.verifierOf()
	if err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, fmt.Errorf("cannot fetch the keys of issuer %s now: %w", a.config.Issuer, err))
	}
	token, err := verifier.Verify(gooidc.ClientContext(ctx, a.config.Client), bearer)
	if err != nil {
		return nil, a.refusalError(err)
	}
	var claims map[string]any
	if err := token.Claims(&claims); err != nil {
		return nil, authn.Errorf("the claims of the token are not a JSON object")
	}
	if azp, _ := claims["azp"].(string); len(token.Audience) > 1 && azp != a.config.Audience {
		return nil, authn.Errorf("the token is for %d audiences, and %s did not ask for it: its azp is %q", len(token.Audience), a.config.Audience, azp)
	}
	return a.principal(claims, token)
}

// principal returns the principal that the claims of a verified token describe.
func (a *Authenticator) principal(claims map[string]any, token *gooidc.IDToken) (*auth.Principal, error) {
	name, _ := claimAt(claims, a.config.NameClaim).(string)
	if name == "" || len(name) > maxName || strings.ContainsAny(name, "'`\"\\?()") || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return nil, connect.NewError(connect.CodePermissionDenied, fmt.Errorf("claim %s of the token must be a name of at most %d bytes without quotes, parentheses, backslashes and question marks", a.config.NameClaim, maxName))
	}
	if auth.IsReserved(name) {
		return nil, connect.NewError(connect.CodePermissionDenied, fmt.Errorf("claim %s of the token is %s, which is reserved: it stands for runs that a schedule started", a.config.NameClaim, name))
	}
	role := strongestRole(claimAt(claims, a.config.RolesClaim))
	if role == v1.Role_ROLE_UNSPECIFIED {
		return nil, connect.NewError(connect.CodePermissionDenied, fmt.Errorf("claim %s of the token of %s contains none of the roles viewer, user, operator and admin", a.config.RolesClaim, name))
	}
	return &auth.Principal{Name: name, Role: role, Kind: auth.KindOIDC, ID: token.Subject, ExpiresAt: token.Expiry}, nil
}

// strongestRole returns the strongest user role that a claim names.
func strongestRole(claim any) v1.Role {
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

// claimAt returns the claim with a name, or nil if there is none. Dots in the name select nested objects. A claim with exactly
// the whole name takes precedence, because some issuers use URLs as names.
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

// refusalError returns the reason why a token is invalid, without any part of the token.
func (a *Authenticator) refusalError(err error) error {
	now := a.config.Now().UTC().Format(time.RFC3339)
	if expired, ok := errors.AsType[*gooidc.TokenExpiredError](err); ok {
		return authn.Errorf("the token expired at %s, and the clock of the gateway shows %s; get another one from %s", expired.Expiry.UTC().Format(time.RFC3339), now, a.config.Issuer)
	}
	text := err.Error()
	switch {
	case strings.Contains(text, "fetching keys"):
		a.config.Logger.Warn("the keys of the issuer cannot be read", "issuer", a.config.Issuer, "error", err)
		return connect.NewError(connect.CodeUnavailable, fmt.Errorf("cannot fetch the keys of issuer %s now", a.config.Issuer))
	case strings.Contains(text, "nbf"):
		return authn.Errorf("the token is not valid yet, and the clock of the gateway shows %s", now)
	case strings.Contains(text, "audience"):
		return authn.Errorf("the token is not for the audience %s", a.config.Audience)
	case strings.Contains(text, "issued by a different provider"):
		return authn.Errorf("the token was not issued by %s", a.config.Issuer)
	case strings.Contains(text, "unsupported algorithm"), strings.Contains(text, "unexpected signature algorithm"):
		return authn.Errorf("the token is signed with an unsupported algorithm; the issuer must sign with RSA, ECDSA or Ed25519")
	case isMalformed(text):
		return authn.Errorf("the token is not known to this gateway")
	}
	return authn.Errorf("the token has no valid signature of %s", a.config.Issuer)
}

func isMalformed(text string) bool {
	return strings.Contains(text, "malformed jwt") || strings.Contains(text, "failed to unmarshal claims")
}

// verifierOf returns the verifier of the issuer's tokens. It reads the issuer's configuration once.
func (a *Authenticator) verifierOf() (*gooidc.IDTokenVerifier, error) {
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
	// The verifier fetches keys with this context for the lifetime of the process.
	provider, err := gooidc.NewProvider(gooidc.ClientContext(context.Background(), a.boundedClient()), a.config.Issuer)
	if err != nil {
		a.failure = withoutBody(err)
		a.config.Logger.Warn("the issuer of tokens cannot be reached", "issuer", a.config.Issuer, "error", a.failure)
		return nil, a.failure
	}
	a.verifier, a.failure = provider.Verifier(&gooidc.Config{ClientID: a.config.Audience, SupportedSigningAlgs: algorithms, Now: a.config.Now}), nil
	return a.verifier, nil
}

// boundedClient returns the client with a time-out for each request.
func (a *Authenticator) boundedClient() *http.Client {
	c := *a.config.Client
	c.Timeout = issuerTimeout
	return &c
}

// maxCause bounds how much of an issuer's response an error repeats, in bytes.
const maxCause = 200

func withoutBody(err error) error {
	if _, ok := errors.AsType[*json.SyntaxError](err); ok {
		return errors.New("its configuration is not JSON")
	}
	text := err.Error()
	if len(text) > maxCause {
		text = strings.ToValidUTF8(text[:maxCause], "") + "..."
	}
	return errors.New(text)
}
