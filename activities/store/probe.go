package store

import (
	"bytes"
	"context"
	"fmt"

	"switchyard/activities/store/storekey"
)

// ProbeRun is the run of the values with which Probe checks a store if no particular run is concerned.
const ProbeRun = "probe"

// Probe returns nil if the store can write a value of a run and read it back. If a Get fails while Probe succeeds, the
// error concerns only that key. Probe bypasses the spool of a node.
func (s *Store) Probe(ctx context.Context, run string) error {
	if sp, ok := s.backend.(*spooler); ok {
		return sp.probe(ctx, run)
	}
	return probe(ctx, s.backend, func(key string, value []byte) error { return s.backend.put(ctx, key, value) }, run)
}

// probe checks the upstream store with a single try.
func (s *spooler) probe(ctx context.Context, run string) error {
	return probe(ctx, s.upstream, func(key string, value []byte) error {
		_, err := s.storeOnce(ctx, key, value, false)
		return err
	}, run)
}

func probe(ctx context.Context, b backend, put func(key string, value []byte) error, run string) error {
	key, want := storekey.Probe(run), []byte("probe")
	if err := put(key, want); err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	got, err := b.get(ctx, key)
	switch {
	case err != nil:
		return fmt.Errorf("read %s: %w", key, err)
	case !bytes.Equal(got, want):
		return fmt.Errorf("read %s: the store returned %d different bytes", key, len(got))
	}
	return nil
}
