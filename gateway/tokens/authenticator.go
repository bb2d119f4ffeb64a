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
	// freshFor is how long a gateway relies on what it has read of a token. With the time between two checks of an open
	// stream it stays below the second within which a revocation counts.
	freshFor = 500 * time.Millisecond
	// maxCached bounds the tokens that are remembered, unknown ones included.
	maxCached = 4096
	// lookTimeout bounds a look at the store.
	lookTimeout = 5 * time.Second
	// useInterval is the shortest time between two notes of the use of one token.
	useInterval = time.Minute
)

// Authenticator finds out who has a token. It is safe for concurrent use. Close ends it.
type Authenticator struct {
	registry *Registry
	log      *slog.Logger
	looks    singleflight.Group
	uses     sync.WaitGroup

	mu     sync.Mutex
	cached map[string]cached    // by id
	used   map[string]time.Time // when the use of a token was noted, by id
}

var _ auth.Authenticator = (*Authenticator)(nil)

// cached is what the store has of a token, or nil if it has nothing.
type cached struct {
	record *v1.TokenRecord
	readAt time.Time
}

// NewAuthenticator returns an authenticator for the tokens of a registry.
func NewAuthenticator(r *Registry, log *slog.Logger) *Authenticator {
	return &Authenticator{registry: r, log: log, cached: map[string]cached{}, used: map[string]time.Time{}}
}

// Close waits for what is still being noted.
func (a *Authenticator) Close() { a.uses.Wait() }

// Authenticate returns who has a token. What does not prove that it knows the secret of a token learns nothing about it.
func (a *Authenticator) Authenticate(ctx context.Context, bearer string) (*auth.Principal, error) {
	id, secret, ok := split(bearer)
	if !ok {
		return nil, errUnknown()
	}
	record, err := a.find(ctx, id)
	if err != nil {
		return nil, connect.NewError(connect.CodeUnavailable, fmt.Errorf("the token cannot be checked now: %w", err))
	}
	if record == nil || !isSecretOf(record, secret) {
		return nil, errUnknown()
	}
	t, now := record.GetToken(), a.registry.now()
	switch stateOf(t, now) {
	case v1.TokenRevoked:
		return nil, authn.Errorf("token %s of %s was revoked at %s", t.GetId(), t.GetName(), t.GetRevokedAt().AsTime().Format(time.RFC3339))
	case v1.TokenExpired:
		return nil, authn.Errorf("token %s of %s expired at %s; an admin creates another with `switchyard tokens create`", t.GetId(), t.GetName(), t.GetExpiresAt().AsTime().Format(time.RFC3339))
	}
	a.noteUse(t.GetId(), now)
	p := &auth.Principal{Name: t.GetName(), Role: v1.ParseRole(t.GetRole()), Node: t.GetNode(), Kind: auth.KindToken, ID: t.GetId()}
	if t.GetExpiresAt() != nil {
		p.ExpiresAt = t.GetExpiresAt().AsTime()
	}
	return p, nil
}

func errUnknown() error { return authn.Errorf("the token is not known to this gateway") }

// find returns what the store has of a token, or nil if it has nothing.
func (a *Authenticator) find(ctx context.Context, id string) (*v1.TokenRecord, error) {
	now := a.registry.now()
	a.mu.Lock()
	known, ok := a.cached[id]
	a.mu.Unlock()
	if ok && now.Sub(known.readAt) < freshFor {
		return known.record, nil
	}
	// A look serves all who ask meanwhile, so that none of them ends it.
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
		clear(a.cached) // each is read again when it is needed
	}
	a.cached[id] = c
}

// noteUse keeps when a token was used, at most once in useInterval.
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
			a.log.Warn("the last use of a token was not kept", "token", id, "error", err)
		}
	})
}
