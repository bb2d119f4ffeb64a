package storetest

import (
	"testing"

	"switchyard/activities/store"
)

// Open opens the store at a location. It is closed when the test ends.
func Open(t testing.TB, location string) *store.Store {
	t.Helper()
	s, err := store.Open(t.Context(), location)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}
