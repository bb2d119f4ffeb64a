package signing

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"sync"
	"time"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

const (
	// keyBytes is the length of the HMAC-SHA-256 key.
	keyBytes = 32
	// maxAge is the maximum age of a decision when it is verified. Between signing and verifying lie a workflow update
	// and a local activity; the rest allows for clock differences.
	maxAge = 10 * time.Minute
	// maxAhead is how far the gateway's clock may be ahead.
	maxAhead = 2 * time.Minute
	// domain is the first field of the signed data, so that the signature of a decision is never valid for anything
	// else signed with the key.
	domain = "switchyard decision 1"
)

// Signer signs and verifies decisions with the key in a store. It is safe for concurrent use.
type Signer struct {
	store *store.Store
	now   func() time.Time

	mu  sync.Mutex
	key []byte // nil until it has been read
	// nonces holds the nonces of used proofs, with the time of use.
	nonces map[string]time.Time
}

// New returns a signer with the key in a store. The key is created at first use.
func New(s *store.Store, now func() time.Time) *Signer { return &Signer{store: s, now: now} }

// Sign signs a decision. Decision.at must be set, because Verify checks the age.
func (s *Signer) Sign(ctx context.Context, d *historyv1.Decision) error {
	key, err := s.readKey(ctx)
	if err == nil {
		d.Signature = mac(key, d)
	}
	return err
}

// Verify returns why a decision is invalid, or "" if it is valid. An error means that the check is not possible now.
func (s *Signer) Verify(ctx context.Context, d *historyv1.Decision) (refused string, err error) {
	key, err := s.readKey(ctx)
	if err != nil {
		return "", err
	}
	age := s.now().Sub(d.GetAt().AsTime())
	switch {
	case !hmac.Equal(d.GetSignature(), mac(key, d)):
		return "its signature is not from a gateway of this deployment", nil
	case age > maxAge:
		return fmt.Sprintf("it is %s old, and counts for %s", age.Round(time.Second), maxAge), nil
	case age < -maxAhead:
		return fmt.Sprintf("it is of %s, which is in the future; do the clocks of the gateways differ?", d.GetAt().AsTime().UTC().Format(time.RFC3339)), nil
	}
	return "", nil
}

// readKey returns the key and caches it. The first call of a deployment creates the key.
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
			key, err = s.store.Get(ctx, storekey.SigningKey) // of several processes, the first one's key
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

// mac returns the signature of a decision. Each field is preceded by its length, and those that most decisions do not have also by
// their name, so that different decisions never produce the same bytes.
func mac(key []byte, d *historyv1.Decision) []byte {
	h := hmac.New(sha256.New, key)
	for _, field := range []string{
		domain, d.GetWorkflow(), d.GetExecution(), d.GetTask(), d.GetVerdict(), d.GetBy(), d.GetRole(), d.GetReason(),
		d.GetAt().AsTime().UTC().Format(time.RFC3339Nano),
	} {
		writeField(h, field)
	}
	if d.GetIsSubmitter() {
		writeField(h, "is_submitter")
	}
	if d.GetInput() != nil {
		text, _ := json.Marshal(d.GetInput().AsMap()) // sorts the names; values of a Struct are always JSON
		writeField(h, "input")
		writeField(h, string(text))
	}
	return h.Sum(nil)
}

func writeField(h hash.Hash, field string) {
	_, _ = fmt.Fprintf(h, "%d:%s", len(field), field) // never fails
}
