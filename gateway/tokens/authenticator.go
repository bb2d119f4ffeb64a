package tokens

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"connectrpc.com/authn"
	"connectrpc.com/connect"
	"golang.org/x/sync/singleflight"

	"switchyard/activities/store"
	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// freshFor is how long a gateway trusts a cached token record. Together with the recheck interval of open streams it
	// stays below one second, the bound within which a revocation takes effect.
	freshFor = 500 * time.Millisecond
	// maxCached bounds the number of cached tokens, including unknown ones.
	maxCached = 4096
	// lookTimeout bounds a look-up in the store.
	lookTimeout = 5 * time.Second
	// useInterval is the minimum time between two records of the use of a token.
	useInterval = time.Minute
)

// Authenticator authenticates callers by their tokens. It is safe for concurrent use. Close waits for its background work.
type Authenticator struct {
	registry *Registry
	log      *slog.Logger
	looks    singleflight.Group
	uses     sync.WaitGroup

	mu     sync.Mutex
	cached map[string]cached    // by id
	used   map[string]time.Time // when the use of a token was last recorded, by id
}

var _ auth.Authenticator = (*Authenticator)(nil)

// cached is the stored record of a token, or a nil record if the token is unknown.
type cached struct {
	record *v1.TokenRecord
	readAt time.Time
}

// NewAuthenticator returns an authenticator for the tokens of a registry.
func NewAuthenticator(r *Registry, log *slog.Logger) *Authenticator {
	return &Authenticator{registry: r, log: log, cached: map[string]cached{}, used: map[string]time.Time{}}
}

// Close waits until pending uses of tokens are recorded.
func (a *Authenticator) Close() { a.uses.Wait() }

// Authenticate returns the principal of a token. The errors reveal nothing about a token to a caller that does not know its
// secret.
func (a *Authenticator) Authenticate(ctx context.Context, bearer string) (*auth.Principal, error) {
	id, secret, ok := split(bearer)
	if !ok {
		return nil, errUnknown()
	}
	record, err := a.find(ctx, id)
	if err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, fmt.Errorf("cannot check the token: %w", err))
	}
	if record == nil || !isSecretOf(record, secret) {
		return nil, errUnknown()
	}
	t, now := record.GetToken(), a.registry.now()
	switch stateOf(t, now) {
	case v1.TokenRevoked:
		return nil, authn.Errorf("token %s of %s was revoked at %s", t.GetId(), t.GetName(), t.GetRevokedAt().AsTime().Format(time.RFC3339))
	case v1.TokenExpired:
		return nil, authn.Errorf("token %s of %s expired at %s; ask an admin to create a new one with `switchyard tokens create`", t.GetId(), t.GetName(), t.GetExpiresAt().AsTime().Format(time.RFC3339))
	}
	a.noteUse(t.GetId(), now)
	p := &auth.Principal{Name: t.GetName(), Role: v1.ParseRole(t.GetRole()), Node: t.GetNode(), Kind: auth.KindToken, ID: t.GetId()}
	if t.GetExpiresAt() != nil {
		p.ExpiresAt = t.GetExpiresAt().AsTime()
	}
	return p, nil
}

func errUnknown() error { return authn.Errorf("the token is not known to this gateway") }

// find returns the record of a token, or nil if the token is unknown.
func (a *Authenticator) find(ctx context.Context, id string) (*v1.TokenRecord, error) {
	now := a.registry.now()
	a.mu.Lock()
	known, ok := a.cached[id]
	a.mu.Unlock()
	if ok && now.Sub(known.readAt) < freshFor {
		return known.record, nil
	}
	// The look-up is shared by all concurrent callers, so the end of one caller must not cancel it.
	looked := a.looks.DoChan(id, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTimeout)
		defer cancel()
		began := a.registry.now()
		record, err := a.registry.record(ctx, id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		a.remember(id, cached{record, began})
		return record, nil
	})
	select {
	case look := <-looked:
		record, _ := look.Val.(*v1.TokenRecord)
		return record, look.Err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (a *Authenticator) remember(id string, c cached) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.cached) >= maxCached {
		clear(a.cached) // records are read again on demand
	}
	a.cached[id] = c
}

// noteUse records the use of a token in the background, at most once per useInterval.
func (a *Authenticator) noteUse(id string, now time.Time) {
	a.mu.Lock()
	due := now.Sub(a.used[id]) >= useInterval
	if due {
		a.used[id] = now
	}
	a.mu.Unlock()
	if !due {
		return
	}
	a.uses.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), lookTimeout)
		defer cancel()
		if err := a.registry.noteUse(ctx, id, now); err != nil {
			a.log.Warn("cannot record the use of a token", "token", id, "error", err)
		}
	})
}
