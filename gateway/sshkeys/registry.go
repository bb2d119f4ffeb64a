package sshkeys

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/auth"
	v1 "switchyard/proto/switchyard/v1"
)

// FingerprintPrefix is the prefix of all fingerprints.
const FingerprintPrefix = "SHA256:"

// Registry holds the keys of a deployment. It is safe for concurrent use, and several registries may share a store.
type Registry struct {
	store *store.Store
	now   func() time.Time
}

// NewRegistry returns the registry in a store.
func NewRegistry(s *store.Store, now func() time.Time) *Registry {
	return &Registry{store: s, now: now}
}

// Add stores a key for a principal and replaces an earlier record of the same key and name.
func (r *Registry) Add(ctx context.Context, p *auth.Principal, key ssh.PublicKey, comment string) (*v1.Key, error) {
	added := &v1.Key{
		Fingerprint: ssh.FingerprintSHA256(key), Type: key.Type(), Name: p.Name, Role: p.Role.Word(), Comment: comment,
		CreatedAt: timestamppb.New(r.now()), PublicKey: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))),
	}
	if err := r.store.PutMessage(ctx, storekey.Key(sha256.Sum256(key.Marshal()), p.Name), &v1.KeyRecord{Key: added}); err != nil {
		return nil, fmt.Errorf("store key %s: %w", added.GetFingerprint(), err)
	}
	return added, nil
}

// Find returns the record of a name's key, given its fingerprint, or nil if the name has no such key.
func (r *Registry) Find(ctx context.Context, name, fingerprint string) (*v1.Key, error) {
	sum, ok := parseFingerprint(fingerprint)
	if !ok {
		return nil, nil
	}
	return r.record(ctx, storekey.Key(sum, name))
}

// Restore stores a key of another deployment with its name and role. CheckRecord has accepted it.
func (r *Registry) Restore(ctx context.Context, k *v1.Key) error {
	sum, ok := parseFingerprint(k.GetFingerprint())
	if !ok {
		return fmt.Errorf("store key: %q is not a fingerprint", k.GetFingerprint())
	}
	if err := r.store.PutMessage(ctx, storekey.Key(sum, k.GetName()), &v1.KeyRecord{Key: k}); err != nil {
		return fmt.Errorf("store key %s: %w", k.GetFingerprint(), err)
	}
	return nil
}

// Of returns the records of a key, one for each name that has added it.
func (r *Registry) Of(ctx context.Context, key ssh.PublicKey) ([]*v1.Key, error) {
	of, _, err := r.list(ctx, storekey.KeysOf(sha256.Sum256(key.Marshal())))
	return of, err
}

// Has reports whether a name still has a key with the role of its record.
func (r *Registry) Has(ctx context.Context, k *v1.Key) (bool, error) {
	record, err := r.Find(ctx, k.GetName(), k.GetFingerprint())
	return record != nil && record.GetRole() == k.GetRole(), err
}

// List returns all keys that can be read, ordered by name, then fingerprint, and a warning for each of the others.
func (r *Registry) List(ctx context.Context) (all []*v1.Key, warnings []string, err error) {
	return r.list(ctx, storekey.KeysPrefix)
}

func (r *Registry) list(ctx context.Context, prefix string) (all []*v1.Key, warnings []string, err error) {
	warnings, err = r.store.ReadEach(ctx, prefix, func(at string) error {
		k, err := r.record(ctx, at)
		if k != nil {
			all = append(all, k)
		}
		return err
	}, func(_ string, err error) string {
		return fmt.Sprintf("a key is left out and refused: %v; remove this value from the store, and add the key again", err)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list keys: %w", err)
	}
	slices.SortFunc(all, func(a, b *v1.Key) int {
		return cmp.Or(cmp.Compare(a.GetName(), b.GetName()), cmp.Compare(a.GetFingerprint(), b.GetFingerprint()))
	})
	return all, warnings, nil
}

// record returns the key stored at a key of the store, or nil if there is none or it was removed.
func (r *Registry) record(ctx context.Context, at string) (*v1.Key, error) {
	var record v1.KeyRecord
	err := r.store.GetMessage(ctx, at, &record)
	if errors.Is(err, store.ErrNotFound) || err == nil && record.GetRemoved() {
		return nil, nil
	}
	if err == nil && record.GetKey().GetFingerprint() == "" {
		err = store.Unreadable(at, "key")
	}
	if err != nil {
		return nil, err
	}
	return record.GetKey(), nil
}

// Remove marks the key of a name as removed.
func (r *Registry) Remove(ctx context.Context, k *v1.Key) error {
	sum, ok := parseFingerprint(k.GetFingerprint())
	if !ok {
		return fmt.Errorf("remove key: %q is not a fingerprint", k.GetFingerprint())
	}
	if err := r.store.PutMessage(ctx, storekey.Key(sum, k.GetName()), &v1.KeyRecord{Key: k, Removed: true}); err != nil {
		return fmt.Errorf("remove key %s: %w", k.GetFingerprint(), err)
	}
	return nil
}

// parseFingerprint decodes a fingerprint as printed by `ssh-keygen -l` or in URL-safe base64.
func parseFingerprint(text string) (sum [sha256.Size]byte, ok bool) {
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(strings.TrimPrefix(text, FingerprintPrefix), "="))
	digest, err := base64.RawStdEncoding.DecodeString(text)
	if err != nil || len(digest) != len(sum) {
		return sum, false
	}
	return [sha256.Size]byte(digest), true
}
