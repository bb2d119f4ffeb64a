package store

import (
	"errors"
	"strings"
	"testing"

	"switchyard/activities/store/storekey"
)

func TestDeletedEnvironmentValueIsGoneAndItsNeighboursStay(t *testing.T) {
	t.Parallel()
	archive := strings.Repeat("0a", 16)
	stored := archive + "/" + strings.Repeat("1", 16)
	first, second := storekey.EnvironmentPart(stored, 0), storekey.EnvironmentPart(stored, 1)
	short, long := storekey.EnvironmentName("desk"), storekey.EnvironmentName("desk2")
	for _, location := range []string{"mem://", t.TempDir()} {
		s, err := Open(t.Context(), location)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		for range 2 {
			for _, key := range []string{first, second, short, long} {
				if existed, err := s.PutIfAbsent(t.Context(), key, []byte(key)); err != nil || existed && (key == first || key == short) {
					t.Errorf("%s: %s: existed %t, %v", location, key, existed, err)
				}
			}
			for range 2 {
				for _, key := range []string{first, short} {
					if err := s.Delete(t.Context(), key); err != nil {
						t.Errorf("%s: %v", location, err)
					}
					if _, err := s.Get(t.Context(), key); !errors.Is(err, ErrNotFound) {
						t.Errorf("%s: %s after its end: %v", location, key, err)
					}
				}
			}
			for _, key := range []string{second, long} {
				if value, err := s.Get(t.Context(), key); string(value) != key || err != nil {
					t.Errorf("%s: %s is %q, %v", location, key, value, err)
				}
			}
		}
		if err := s.Delete(t.Context(), storekey.Result("ci-0k", 0, "build", 0)); err == nil {
			t.Errorf("%s: the value of a run is deleted", location)
		}
	}
}
