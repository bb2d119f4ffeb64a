package store

import (
	"bytes"
	"context"
	"fmt"
)

// Probe returns nil if the store takes a value of a run and gives it back. The error
// of a Get that fails beside a successful Probe concerns its own key.
func (s *Store) Probe(ctx context.Context, run string) error {
	key, want := ProbeKey(run), []byte("probe")
	if err := s.Put(ctx, key, want); err != nil {
		return err
	}
	got, err := s.Get(ctx, key)
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("read %s: the store returns %d other bytes", key, len(got))
	}
	return err
}
