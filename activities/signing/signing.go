package signing

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"sync"
	"time"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// keyBytes is the size of the key of HMAC-SHA-256.
	keyBytes = 32
	// maxAge is how old a decision may be when it is verified. Between the two lie an update of a workflow and a local
	// activity; the rest allows for clocks that differ.
	maxAge = 10 * time.Minute
	// maxAhead is how far the clock of the gateway may be ahead.
	maxAhead = 2 * time.Minute
	// domain begins what is signed, so that the key signs nothing else in the same words.
	domain = "switchyard decision 1"
)

// Signer signs decisions and verifies them, with the key in a store. It is safe for concurrent use.
type Signer struct {
	store *store.Store
	now   func() time.Time

	mu  sync.Mutex
	key []byte // nil until it has been read
	// nonces are the proofs that were used, and when.
	nonces map[string]time.Time
}

// New returns a signer with the key in a store, which is made at first use.
func New(s *store.Store, now func() time.Time) *Signer { return &Signer{store: s, now: now} }

// Sign adds the signature to a decision, and the time.
func (s *Signer) Sign(ctx context.Context, d *v1.Decision) error {
	key, err := s.readKey(ctx)
	if err == nil {
		d.Signature = mac(key, d)
	}
	return err
}

// Verify returns why a decision does not count, or "" if it does. The error says that this cannot be known now.
func (s *Signer) Verify(ctx context.Context, d *v1.Decision) (refused string, err error) {
	key, err := s.readKey(ctx)
	if err != nil {
		return "", err
	}
	age := s.now().Sub(d.GetAt().AsTime())
	switch {
	case !hmac.Equal(d.GetSignature(), mac(key, d)):
		return "its signature is not one of a gateway", nil
	case age > maxAge:
		return fmt.Sprintf("it is %s old, and counts for %s", age.Round(time.Second), maxAge), nil
	case age < -maxAhead:
		return fmt.Sprintf("it is of %s, which lies ahead; do the clocks of the gateways differ?", d.GetAt().AsTime().UTC().Format(time.RFC3339)), nil
	}
	return "", nil
}

// readKey returns the key. The first call of a deployment creates it.
func (s *Signer) readKey(ctx context.Context) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.key != nil {
		return s.key, nil
	}
	key, err := s.store.Get(ctx, storekey.SigningKey)
	if errors.Is(err, store.ErrNotFound) {
		fresh := make([]byte, keyBytes)
		_, _ = rand.Read(fresh) // never fails
		if _, err = s.store.PutIfAbsent(ctx, storekey.SigningKey, fresh); err == nil {
			key, err = s.store.Get(ctx, storekey.SigningKey) // that of the first of several processes
		}
	}
	if err == nil && len(key) != keyBytes {
		err = fmt.Errorf("%s has %d bytes, not %d", storekey.SigningKey, len(key), keyBytes)
	}
	if err != nil {
		return nil, fmt.Errorf("read the signing key: %w", err)
	}
	s.key = key
	return key, nil
}

// mac returns the signature of a decision. Each field is preceded by its length, so that no two decisions give the same
// bytes.
func mac(key []byte, d *v1.Decision) []byte {
	h := hmac.New(sha256.New, key)
	for _, field := range []string{
		domain, d.GetWorkflow(), d.GetExecution(), d.GetTask(), d.GetVerdict(), d.GetBy(), d.GetRole(), d.GetReason(),
		d.GetAt().AsTime().UTC().Format(time.RFC3339Nano),
	} {
		writeField(h, field)
	}
	return h.Sum(nil)
}

func writeField(h hash.Hash, field string) {
	_, _ = fmt.Fprintf(h, "%d:%s", len(field), field) // never fails
}
