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
	id, err := s.backend.identify(ctx)
	if err == nil && id == "" {
		err = fmt.Errorf("it has none")
	}
	if err != nil {
		return "", fmt.Errorf("read the identity of the store %s: %w", s.Location(), err)
	}
	s.identity.Store(&id)
	return id, nil
}

func (b *bucket) identify(ctx context.Context) (string, error) {
	if _, err := b.putIfAbsent(ctx, IdentityKey, []byte(uuid.NewString())); err != nil {
		return "", err
	}
	value, err := b.get(ctx, IdentityKey)
	return string(value), err
}

func (f *folder) identify(context.Context) (string, error) {
	path := f.path(IdentityKey)
	if _, err := f.link(path, []byte(uuid.NewString())); err != nil {
		return "", err
	}
	value, err := os.ReadFile(path)
	return strings.TrimSpace(string(value)), err
}

// identify tries only once, because its callers report the failure.
func (r *remote) identify(ctx context.Context) (string, error) {
	res, err := r.calls.GetBlob(ctx, connect.NewRequest(&v1.GetBlobRequest{Key: IdentityKey}))
	if err != nil {
		return "", r.failed(err)
	}
	return string(res.Msg.GetData()), nil
}
