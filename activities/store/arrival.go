package store

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"
)

// Arrival is how long a value that was stored may be on its way: one that a node
// has spooled while the gateway was away arrives soon after that is back.
const Arrival = 5 * time.Second

// Tries is how often a value is read that the store cannot give although it answers otherwise; after that the value
// counts as unreadable.
const Tries = 3

// Pause between two looks for a value that is on its way, doubling.
const firstLook, lastLook = 50 * time.Millisecond, time.Second

// Await is Get for a value that is known to have been stored, maybe by another
// process: when it is missing it is waited for so long. Without it the error is
// ErrNotFound then.
func (s *Store) Await(ctx context.Context, key string, patience time.Duration) ([]byte, error) {
	deadline := time.Now().Add(patience)
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		value, err := s.Get(ctx, key)
		if !errors.Is(err, ErrNotFound) || time.Now().After(deadline) {
			return value, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, err
		}
	}
}

// AwaitMessage is Await for what PutMessage has stored.
func (s *Store) AwaitMessage(ctx context.Context, key string, m proto.Message, patience time.Duration) error {
	value, err := s.Await(ctx, key, patience)
	if err != nil {
		return err
	}
	return unmarshal(key, value, m)
}
