package store

import (
	"context"
	"fmt"
	"os"
	"strings"

	"connectrpc.com/connect"
	"github.com/google/uuid"

	v1 "switchyard/proto/switchyard/v1"
)

// IdentityKey is the key of the random text that identifies a store. A gateway serves it but refuses to write it.
const IdentityKey = "identity"

// Identity returns the text that distinguishes this store from all others. It is the same for all that open the same
// store, directly or through a gateway. The first call for a store creates it.
func (s *Store) Identity(ctx context.Context) (string, error) {
	if id := s.identity.Load(); id != nil {
		return *id, nil
	}
	id, err := s.backend.ensure(ctx, IdentityKey, uuid.NewString())
	if err == nil && id == "" {
		err = fmt.Errorf("it has none")
	}
	if err != nil {
		return "", fmt.Errorf("read the identity of the store %s: %w", s.Location(), err)
	}
	s.identity.Store(&id)
	return id, nil
}

func (b *bucket) ensure(ctx context.Context, key, text string) (string, error) {
	if _, err := b.putIfAbsent(ctx, key, []byte(text)); err != nil {
		return "", err
	}
	value, err := b.get(ctx, key)
	return string(value), err
}

func (f *folder) ensure(_ context.Context, key, text string) (string, error) {
	if err := f.present(); err != nil {
		return "", err
	}
	path := f.path(key)
	if _, err := f.link(path, []byte(text)); err != nil {
		return "", err
	}
	value, err := os.ReadFile(path)
	return strings.TrimSpace(string(value)), err
}

// ensure returns the gateway's text, and tries only once, because its callers report the failure.
func (r *remote) ensure(ctx context.Context, key, _ string) (string, error) {
	res, err := r.calls.GetBlob(ctx, connect.NewRequest(&v1.GetBlobRequest{Key: key}))
	if err != nil {
		return "", r.failed(err)
	}
	return string(res.Msg.GetData()), nil
}
