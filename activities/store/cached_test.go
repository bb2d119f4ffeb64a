package store

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"switchyard/activities/store/storekey"
)

// DeleteOlder removes old cached results, and keeps the values of runs.
func TestDeleteOldResults(t *testing.T) {
	t.Parallel()
	for _, location := range []string{"mem://", t.TempDir()} {
		s, err := Open(t.Context(), location)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		if removed, err := s.DeleteOlder(t.Context(), storekey.CachedPrefix, time.Now()); removed != 0 || err != nil {
			t.Errorf("%s: of an empty store %d, %v", location, removed, err)
		}
		run := storekey.Result("r-1", 0, "build", 0)
		cached := []string{storekey.Cached("w", "build", "a"), storekey.Cached("w", "build", "b"), storekey.Cached("w.x", "test", "a"), storekey.Cached("w", "a__0xb", "")}
		for _, key := range append(cached, run) {
			if err := s.Put(t.Context(), key, []byte(key)); err != nil {
				t.Fatal(err)
			}
		}
		if got := slices.Compact(slices.Sorted(slices.Values(cached))); len(got) != len(cached) {
			t.Errorf("equal keys among %q", cached)
		}
		for _, step := range []struct {
			before  time.Time
			removed int
		}{{time.Now().Add(-time.Hour), 0}, {time.Now().Add(time.Hour), len(cached)}, {time.Now().Add(time.Hour), 0}} {
			if removed, err := s.DeleteOlder(t.Context(), storekey.CachedPrefix, step.before); removed != step.removed || err != nil {
				t.Errorf("%s: %d removed, %v, want %d", location, removed, err, step.removed)
			}
			for _, key := range append(slices.Clone(cached), run) {
				_, err := s.Get(t.Context(), key)
				if there := key == run || step.before.Before(time.Now()); errors.Is(err, ErrNotFound) == there {
					t.Errorf("%s: %s is there: %v, want %v", location, key, err, there)
				}
			}
		}
	}
}

// DeleteOlder removes old idempotency keys only.
func TestDeleteOldRequests(t *testing.T) {
	t.Parallel()
	s, err := Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	key := storekey.Request("../k")
	if existed, err := s.PutIfAbsent(t.Context(), key, []byte("a")); existed || err != nil {
		t.Fatalf("%t, %v", existed, err)
	}
	if existed, err := s.PutIfAbsent(t.Context(), key, []byte("b")); !existed || err != nil {
		t.Errorf("a second time: %t, %v", existed, err)
	}
	if value, err := s.Get(t.Context(), key); string(value) != "a" || err != nil {
		t.Errorf("it stands for %q, %v", value, err)
	}
	for _, step := range []struct {
		before  time.Time
		removed int
	}{{time.Now().Add(-time.Hour), 0}, {time.Now().Add(time.Hour), 1}} {
		if removed, err := s.DeleteOlder(t.Context(), storekey.RequestsPrefix, step.before); removed != step.removed || err != nil {
			t.Errorf("%d removed, %v, want %d", removed, err, step.removed)
		}
	}
	if storekey.Check(key) == nil {
		t.Error("a client reaches what idempotency keys stand for")
	}
}

// Workflows and tasks whose names differ only in case share no cached result, even if the file system ignores case.
func TestCachedKeysDifferBesidesCase(t *testing.T) {
	keys := []string{storekey.Cached("Foo", "build", "a"), storekey.Cached("foo", "build", "a"), storekey.Cached("foo", "Build", "a"), storekey.Cached("foo", "build", "A")}
	for i, a := range keys {
		for _, b := range keys[:i] {
			if strings.EqualFold(a, b) {
				t.Errorf("%s and %s are the same file where case is ignored", a, b)
			}
		}
	}
}

// The keys of lists and reused results belong to their run. Those of cached results do not, so Check refuses them.
func TestKeysOfListsAndCachedResults(t *testing.T) {
	t.Parallel()
	digest := storekey.Digest([]byte("anything"))
	for _, key := range []string{storekey.List("r-1", digest), storekey.Reused("r-1", digest)} {
		if err := storekey.Check(key); err != nil {
			t.Error(err)
		}
	}
	if key := storekey.Cached("w", "build", "../../x"); storekey.Check(key) == nil || !strings.HasPrefix(key, storekey.CachedPrefix+"w/build/") || strings.Contains(key, "..") {
		t.Errorf("the key of a cached result is %s", key)
	}
}
