package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"switchyard/activities/store/storekey"
)

// forgottenAfter is how long the sign of a collector is kept after its last change.
const forgottenAfter = 24 * time.Hour

// Announce stores the sign of a process that removes old values from the store, and returns the signs of all others by their ids. A
// live collector changes its sign from time to time; one that stays as it was may be left from an ended process.
func (s *Store) Announce(ctx context.Context, collector, sign string) (others map[string]string, err error) {
	if err := s.Put(ctx, storekey.CollectorsPrefix+collector, []byte(sign)); err != nil {
		return nil, err
	}
	if _, err := s.backend.deleteOlder(ctx, storekey.CollectorsPrefix, time.Now().Add(-forgottenAfter)); err != nil {
		return nil, fmt.Errorf("delete the signs of old collectors: %w", err)
	}
	others = map[string]string{}
	for key, err := range s.Keys(ctx, storekey.CollectorsPrefix) {
		if err != nil {
			return nil, err
		}
		id := strings.TrimPrefix(key, storekey.CollectorsPrefix)
		if id == collector {
			continue
		}
		text, err := s.Get(ctx, key)
		if errors.Is(err, ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		others[id] = string(text)
	}
	return others, nil
}
