package sshdoor

import (
	"context"
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"

	"golang.org/x/crypto/ssh"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
)

// HostKey returns the host key that all gateways of a deployment share. The first call creates it.
func HostKey(ctx context.Context, s *store.Store) (ssh.Signer, error) {
	text, err := s.Get(ctx, storekey.HostKey)
	if errors.Is(err, store.ErrNotFound) {
		var fresh []byte
		if fresh, err = newHostKey(); err == nil {
			_, err = s.PutIfAbsent(ctx, storekey.HostKey, fresh)
		}
		if err == nil {
			text, err = s.Get(ctx, storekey.HostKey) // another gateway may have stored its key first
		}
	}
	if err != nil {
		return nil, fmt.Errorf("read the SSH host key: %w", err)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		return nil, fmt.Errorf("read the SSH host key: %s in the store is not a private key: %w", storekey.HostKey, err)
	}
	return signer, nil
}

// newHostKey returns a new private key in PEM.
func newHostKey() ([]byte, error) {
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, err
	}
	block, err := ssh.MarshalPrivateKey(private, "switchyard")
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(block), nil
}
