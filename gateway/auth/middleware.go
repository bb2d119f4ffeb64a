package auth

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode"

	"connectrpc.com/authn"
	"connectrpc.com/connect"

	"switchyard/gateway/edge"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// maxBearer bounds the size of a token in bytes. A token of an OIDC issuer with many groups takes some KiB.
	maxBearer = 16 << 10
	// maxActor bounds the name that a client claims, in characters.
	maxActor = 80
	// DefaultRecheck is the interval at which the token of an open request is checked again.
	DefaultRecheck = 400 * time.Millisecond
	// challenge is the WWW-Authenticate header of a 401 response.
	challenge = `Bearer realm="switchyard"`
)

// Authenticator identifies the holder of a token. It is safe for concurrent use.
type Authenticator interface {
	// Authenticate returns the principal of a token. The error has the code Unauthenticated for an invalid token, and
	// another code if validity cannot be determined at the moment. Its text never contains the token.
	Authenticate(ctx context.Context, bearer string) (*Principal, error)
}

// Lock authenticates requests.
type Lock struct {
	// Authenticator authenticates callers. If it is nil, authentication is off, and each caller is an admin under the name
	// that it claims.
	Authenticator Authenticator
	// ActorHeader is the header in which a client claims a name.
	ActorHeader string
	// Recheck is the interval at which the token of an open request is checked again, so that streams end when their token
	// is revoked. Default: 400 ms, which together with the caches of Authenticators stays below a second.
	Recheck time.Duration
	// OnRefused is called for each refused request. It may be nil.
	OnRefused func(r *http.Request, err error)
	// Refuse responds to a refused request. Default: with the error, in the protocol of the caller.
	Refuse func(w http.ResponseWriter, r *http.Request, err error)
}

// Middleware returns a handler that passes authenticated requests to next, and refuses all others.
func (l Lock) Middleware(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, bearer, err := l.principal(r)
		if err != nil {
			l.notifyRefused(r, err)
			if connect.CodeOf(err) == connect.CodeUnauthenticated {
				w.Header().Set("WWW-Authenticate", challenge)
			}
			refuse := l.Refuse
			if refuse == nil {
				refuse = edge.WriteError
			}
			refuse(w, r, err)
			return
		}
		ctx, release := l.whileValid(context.WithValue(With(r.Context(), p), hookKey{}, l.notifyRefused), bearer)
		defer release()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// hookKey is the context key of the OnRefused hook.
type hookKey struct{}

func (l Lock) notifyRefused(r *http.Request, err error) {
	if l.OnRefused != nil {
		l.OnRefused(r, err)
	}
}

// Refuse responds to a request that its caller may not make. It is for paths outside the services.
func Refuse(w http.ResponseWriter, r *http.Request, err error) {
	if refused, ok := r.Context().Value(hookKey{}).(func(*http.Request, error)); ok {
		refused(r, err)
	}
	edge.WriteError(w, r, err)
}

// whileValid returns a context that ends, with the error of the Authenticator as its cause, once the token is no longer
// valid. While validity cannot be determined, the request continues. The caller must call release.
func (l Lock) whileValid(parent context.Context, bearer string) (ctx context.Context, release func()) {
	if bearer == "" {
		return parent, func() {}
	}
	ctx, cancel := context.WithCancelCause(parent)
	ended := make(chan struct{})
	first := time.AfterFunc(cmp.Or(l.Recheck, DefaultRecheck), func() {
		defer close(ended)
		l.recheck(ctx, cancel, bearer)
	})
	return ctx, func() {
		cancel(context.Canceled)
		if !first.Stop() {
			<-ended
		}
	}
}

// recheck checks a token until ctx ends, and cancels ctx once the token is no longer valid.
func (l Lock) recheck(ctx context.Context, cancel context.CancelCauseFunc, bearer string) {
	pause := time.NewTicker(cmp.Or(l.Recheck, DefaultRecheck))
	defer pause.Stop()
	for {
		if _, err := l.Authenticator.Authenticate(ctx, bearer); connect.CodeOf(err) == connect.CodeUnauthenticated {
			cancel(err)
		}
		select {
		case <-ctx.Done():
			return
		case <-pause.C:
		}
	}
}

// EndOf returns the error with which the lock ended a request, or err if the lock did not end it.
func EndOf(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && connect.CodeOf(cause) == connect.CodeUnauthenticated {
		return cause
	}
	return err
}

// principal returns the caller of a request and the token that proves its identity, or "" if authentication is off.
func (l Lock) principal(r *http.Request) (p *Principal, bearer string, err error) {
	if l.Authenticator == nil {
		return &Principal{Name: claimedName(r.Header.Get(l.ActorHeader)), Role: v1.Role_ROLE_ADMIN, Kind: KindNone}, "", nil
	}
	if parameter := tokenParameter(r.URL); parameter != "" {
		return nil, "", rpcerror.Invalid("the URL has the parameter %q: a token in a URL ends up in logs; send it as `Authorization: Bearer TOKEN`, and revoke this one", parameter)
	}
	switch values := r.Header.Values("Authorization"); {
	case len(values) == 0:
		return nil, "", authn.Errorf("this gateway requires a token: run `switchyard login`, set SWITCHYARD_TOKEN, or send `Authorization: Bearer TOKEN`")
	case len(values) > 1:
		return nil, "", authn.Errorf("the request has %d Authorization headers; send one", len(values))
	}
	bearer, ok := authn.BearerToken(r)
	switch bearer = strings.TrimSpace(bearer); {
	case !ok || bearer == "":
		return nil, "", authn.Errorf("the Authorization header is not `Bearer TOKEN`")
	case len(bearer) > maxBearer:
		return nil, "", authn.Errorf("the token has %d bytes; the maximum is %d", len(bearer), maxBearer)
	}
	p, err = l.Authenticator.Authenticate(r.Context(), bearer)
	return p, bearer, err
}

// tokenParameter returns the name of a URL parameter that looks like a token, or "".
func tokenParameter(u *url.URL) string {
	for name := range u.Query() {
		switch strings.ToLower(name) {
		case "access_token", "token", "authorization", "bearer", "api_key", "apikey":
			return name
		}
	}
	return ""
}

// claimedName returns the name that a client claims, marked as unverified, or "" if it claims none.
func claimedName(claim string) string {
	name := []rune(strings.TrimSpace(strings.Map(printable, claim)))
	if len(name) == 0 {
		return ""
	}
	return string(name[:min(len(name), maxActor)]) + Unverified
}

// printable returns r, or -1 if r cannot be printed or is a parenthesis, which the gateway reserves for itself.
func printable(r rune) rune {
	if !unicode.IsPrint(r) || r == unicode.ReplacementChar || r == '(' || r == ')' {
		return -1
	}
	return r
}
