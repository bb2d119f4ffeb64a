package store

import (
	"context"
	"errors"
	"testing"
	"time"

	"switchyard/activities/store/storekey"
)

// openAt opens a store whose backend a test may look at.
func openAt(t *testing.T, location string) *Store {
	t.Helper()
	s, err := Open(t.Context(), location)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestStoreServesOnlyTheClusterThatClaimedIt checks that each operation on the store of another cluster fails, and
// that the values of the owner stay.
func TestStoreServesOnlyTheClusterThatClaimedIt(t *testing.T) {
	t.Parallel()
	bucket := openAt(t, "mem://")
	for name, reopen := range map[string]func(t *testing.T, dir string) *Store{
		"folder": func(t *testing.T, dir string) *Store { return openAt(t, dir) },
		"bucket": func(*testing.T, string) *Store { return newStore(bucket.backend) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			key, cached := storekey.Status("run-00000001", 0), storekey.Cached("w", "build", "k")
			owner := reopen(t, dir)
			owner.LimitLogs(1 << 30)
			owner.ClaimFor("cluster-1", "test")
			for _, key := range []string{key, cached} {
				if err := owner.Put(t.Context(), key, []byte("x")); err != nil {
					t.Fatal(err)
				}
			}
			claim, err := owner.Claim(t.Context())
			if err != nil || claim.Cluster != "cluster-1" || time.Since(claim.Since) > time.Hour {
				t.Errorf("the claim is %v, %v", claim, err)
			}
			other := reopen(t, dir)
			other.ClaimFor("cluster-2", "test")
			for what, do := range map[string]func(ctx context.Context) error{
				"put":        func(ctx context.Context) error { return other.Put(ctx, key, nil) },
				"put absent": func(ctx context.Context) error { _, err := other.PutIfAbsent(ctx, key, nil); return err },
				"get":        func(ctx context.Context) error { _, err := other.Get(ctx, key); return err },
				"identity":   func(ctx context.Context) error { _, err := other.Identity(ctx); return err },
				"claim":      func(ctx context.Context) error { _, err := other.Claim(ctx); return err },
				"probe":      func(ctx context.Context) error { return other.Probe(ctx, "run-00000001") },
				"newest":     func(ctx context.Context) error { _, err := other.Newest(ctx, "run-00000001"); return err },
				"delete":     func(ctx context.Context) error { return other.DeleteRun(ctx, "run-00000001") },
				"delete old": func(ctx context.Context) error {
					_, err := other.DeleteOlder(ctx, storekey.CachedPrefix, time.Now().Add(time.Hour))
					return err
				},
				"list": func(ctx context.Context) error { return last(other.Keys(ctx, storekey.RunsPrefix)) },
				"runs": func(ctx context.Context) error { return last(other.Runs(ctx)) },
			} {
				if err := do(t.Context()); !errors.Is(err, ErrForeign) {
					t.Errorf("%s of another cluster: %v", what, err)
				}
			}
			again := reopen(t, dir)
			again.ClaimFor("cluster-1", "test")
			for _, key := range []string{key, cached} {
				if got, err := again.Get(t.Context(), key); string(got) != "x" {
					t.Errorf("the owner has %q, %v at %s", got, err, key)
				}
			}
		})
	}
}

// TestClaimSeesAnotherOwner checks that Claim reads the store again.
func TestClaimSeesAnotherOwner(t *testing.T) {
	t.Parallel()
	s := openAt(t, t.TempDir())
	s.ClaimFor("cluster-1", "test")
	if _, err := s.Claim(t.Context()); err != nil {
		t.Fatal(err)
	}
	files := s.backend.(*claimed).sizer
	if err := files.put(t.Context(), ClaimKey, []byte("cluster-2 2026-11-28T10:00:00Z")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Claim(t.Context()); !errors.Is(err, ErrForeign) {
		t.Errorf("after the change of the owner: %v", err)
	}
	if err := s.DeleteRun(t.Context(), "run-00000001"); !errors.Is(err, ErrForeign) {
		t.Errorf("a delete after the change of the owner: %v", err)
	}
}

// last returns the error that ends a sequence.
func last(seq func(func(string, error) bool)) (err error) {
	for _, err = range seq {
	}
	return err
}
