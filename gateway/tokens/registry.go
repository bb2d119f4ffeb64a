package tokens

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/rpcerror"
	v1 "switchyard/proto/switchyard/v1"
)

// firstID is the id of the token that the first start of a deployment creates.
const firstID = "first"

// IsFirst reports whether a token is the one that the first start of its deployment has created.
func IsFirst(t *v1.Token) bool { return t.GetId() == firstID }

// Registry holds the tokens of a deployment. It is safe for concurrent use, and several registries may share a store.
type Registry struct {
	store *store.Store
	now   func() time.Time
}

// NewRegistry returns the registry in a store.
func NewRegistry(s *store.Store, now func() time.Time) *Registry {
	return &Registry{store: s, now: now}
}

// Create stores a new token and returns it with its secret. A lifetime of 0 means that the token never expires.
func (r *Registry) Create(ctx context.Context, t *v1.Token, lifetime time.Duration) (secret string, created *v1.Token, err error) {
	t = proto.CloneOf(t)
	t.Id = newText(idBytes)
	return r.put(ctx, t, lifetime)
}

func (r *Registry) put(ctx context.Context, t *v1.Token, lifetime time.Duration) (secret string, created *v1.Token, err error) {
	t.CreatedAt = timestamppb.New(r.now())
	if lifetime > 0 {
		t.ExpiresAt = timestamppb.New(r.now().Add(lifetime))
	}
	part := newText(secretBytes)
	existed, err := r.store.PutMessageIfAbsent(ctx, storekey.Token(t.GetId()), &v1.TokenRecord{Token: t, SecretSha256: digest(part)})
	if err != nil {
		return "", nil, fmt.Errorf("store a token: %w", err)
	}
	if existed {
		return "", nil, errExists
	}
	created = proto.CloneOf(t)
	created.State = stateOf(t, r.now())
	return join(t.GetId(), part), created, nil
}

// errExists is returned if the id of a new token is taken.
var errExists = errors.New("the token already exists")

// HasFirst reports whether the first admin token has been created.
func (r *Registry) HasFirst(ctx context.Context) (bool, error) {
	_, err := r.record(ctx, firstID)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// CreateFirst creates the first admin token, which never expires, and returns its secret, or "" if another gateway has
// already created it.
func (r *Registry) CreateFirst(ctx context.Context) (secret string, err error) {
	secret, _, err = r.put(ctx, &v1.Token{Id: firstID, Name: v1.RoleAdmin, Role: v1.RoleAdmin}, 0)
	if errors.Is(err, errExists) {
		return "", nil
	}
	return secret, err
}

// record returns the stored record of a token.
func (r *Registry) record(ctx context.Context, id string) (*v1.TokenRecord, error) {
	var record v1.TokenRecord
	if err := r.store.GetMessage(ctx, storekey.Token(id), &record); err != nil {
		return nil, err
	}
	if record.GetToken().GetId() != id {
		return nil, store.Unreadable(storekey.Token(id), "token "+id)
	}
	return &record, nil
}

// Record returns the stored record of a token, or nil if no token has the id.
func (r *Registry) Record(ctx context.Context, id string) (*v1.TokenRecord, error) {
	record, err := r.record(ctx, id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	return record, err
}

// Restore stores the record of a token of another deployment. CheckRecord has accepted it.
func (r *Registry) Restore(ctx context.Context, record *v1.TokenRecord) error {
	if err := r.store.PutMessage(ctx, storekey.Token(record.GetToken().GetId()), record); err != nil {
		return fmt.Errorf("store token %s: %w", record.GetToken().GetId(), err)
	}
	return nil
}

// List returns all tokens that can be read, ordered by name, then id, and a warning for each of the others.
func (r *Registry) List(ctx context.Context) (all []*v1.Token, warnings []string, err error) {
	var uses []string
	warnings, err = r.store.ReadEach(ctx, storekey.TokensPrefix, func(key string) error {
		record, err := r.record(ctx, strings.TrimPrefix(key, storekey.TokensPrefix))
		if err != nil {
			return err
		}
		t := record.GetToken()
		t.State = stateOf(t, r.now())
		t.LastUsedAt, err = r.lastUse(ctx, t.GetId())
		if store.IsOfOneValue(err) {
			uses = append(uses, fmt.Sprintf("the last use of token %s is unknown: %v", t.GetId(), err))
			err = nil
		}
		all = append(all, t)
		return err
	}, func(key string, err error) string {
		return fmt.Sprintf("token %s is left out and refused: %v; create another, and remove this value from the store", strings.TrimPrefix(key, storekey.TokensPrefix), err)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list tokens: %w", err)
	}
	slices.SortFunc(all, func(a, b *v1.Token) int {
		return cmp.Or(cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetId(), b.GetId()))
	})
	return all, append(warnings, uses...), nil
}

// lastUse returns when a token was last used, or nil if it never was.
func (r *Registry) lastUse(ctx context.Context, id string) (*timestamppb.Timestamp, error) {
	value, err := r.store.Get(ctx, storekey.TokenUse(id))
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	at, err := time.Parse(time.RFC3339, string(bytes.TrimSpace(value)))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", storekey.TokenUse(id), store.ErrUnreadable, err)
	}
	return timestamppb.New(at), nil
}

// noteUse records when a token was last used.
func (r *Registry) noteUse(ctx context.Context, id string, at time.Time) error {
	return r.store.Put(ctx, storekey.TokenUse(id), []byte(at.UTC().Format(time.RFC3339)))
}

// Revoke revokes the token with the given id, or the only active token with the given name.
func (r *Registry) Revoke(ctx context.Context, named, by string) (*v1.Token, error) {
	if id, _, ok := split(named); ok {
		return nil, rpcerror.Invalid("this is a complete token; use its id, %s, to keep the secret out of logs and shell history", id)
	}
	all, _, err := r.List(ctx)
	if err != nil {
		return nil, err
	}
	t, err := find(all, named)
	if err != nil {
		return nil, err
	}
	if t.GetState() == v1.TokenRevoked {
		return nil, rpcerror.WrongState("token %s was revoked at %s by %s", t.GetId(), t.GetRevokedAt().AsTime().Format(time.RFC3339), t.GetRevokedBy())
	}
	if isAdmin := t.GetRole() == v1.RoleAdmin && t.GetState() == v1.TokenActive; isAdmin && !slices.ContainsFunc(all, func(o *v1.Token) bool {
		return o.GetId() != t.GetId() && o.GetRole() == v1.RoleAdmin && o.GetState() == v1.TokenActive
	}) {
		return nil, rpcerror.WrongState("token %s is the last active admin token; create another first with `switchyard tokens create --name NAME --role admin`", t.GetId())
	}
	record, err := r.record(ctx, t.GetId())
	if err != nil {
		return nil, fmt.Errorf("revoke token %s: %w", t.GetId(), err)
	}
	record.Token.RevokedAt, record.Token.RevokedBy = timestamppb.New(r.now()), by
	if err := r.store.PutMessage(ctx, storekey.Token(t.GetId()), record); err != nil {
		return nil, fmt.Errorf("revoke token %s: %w", t.GetId(), err)
	}
	t.RevokedAt, t.RevokedBy, t.State = record.GetToken().GetRevokedAt(), by, v1.TokenRevoked
	return t, nil
}

// find returns the token with an id, or the only active token with a name.
func find(all []*v1.Token, named string) (*v1.Token, error) {
	var ofName []*v1.Token
	for _, t := range all {
		if t.GetId() == named {
			return t, nil
		}
		if t.GetName() == named && t.GetState() == v1.TokenActive {
			ofName = append(ofName, t)
		}
	}
	switch len(ofName) {
	case 0:
		return nil, connect.NewError(connect.CodeNotFound, fmt.Errorf("there is no token %q; `switchyard tokens list` lists them", named))
	case 1:
		return ofName[0], nil
	}
	var ids []string
	for _, t := range ofName {
		ids = append(ids, t.GetId())
	}
	return nil, rpcerror.Invalid("%s has %d active tokens; name one by its id: %s", named, len(ofName), strings.Join(ids, ", "))
}
