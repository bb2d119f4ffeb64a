package store

import (
	"bytes"
	"context"
	"fmt"

	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

// Probe returns nil if the store takes a value of a run and gives it back. The error
// of a Get that fails beside a successful Probe concerns its own key.
func (s *Store) Probe(ctx context.Context, run string) error {
	key, want := storekey.Probe(run), []byte("probe")
	if s, ok := s.backend.(*spooler); ok { // its spool takes and gives values while the gateway is away
		_, err := s.storeOnce(ctx, &v1.PutBlobRequest{Key: key, Data: want})
		return err
	}
	if err := s.Put(ctx, key, want); err != nil {
		return err
	}
	got, err := s.Get(ctx, key)
	if err == nil && !bytes.Equal(got, want) {
		err = fmt.Errorf("read %s: the store returns %d other bytes", key, len(got))
	}
	return err
}
