package store

import (
	"context"
	"errors"
	"time"

	"google.golang.org/protobuf/proto"
)

// Arrival is how long a stored value may still be on its way: a value that a node spooled while the gateway was away
// arrives soon after the gateway is back.
const Arrival = 5 * time.Second

// Tries is how often reading a value may fail while the store responds otherwise. After that many failures the value
// counts as unreadable.
const Tries = 3

// The pause between two looks for a value on its way starts at firstLook and doubles up to lastLook.
const firstLook, lastLook = 50 * time.Millisecond, time.Second

// LimitArrival bounds how long Await waits for a missing value, whatever its callers ask for. Tests of values that never come
// set it. It must be called before the first use of the Store.
func (s *Store) LimitArrival(d time.Duration) { s.arrival = d }

// Await returns the value of a key that is known to have been stored, possibly by another process. If the value is
// missing, Await waits for up to patience. If it is still missing then, the error is ErrNotFound.
func (s *Store) Await(ctx context.Context, key string, patience time.Duration) ([]byte, error) {
	if s.arrival > 0 {
		patience = min(patience, s.arrival)
	}
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

// AwaitMessage reads into m a message that PutMessage is known to have stored. It waits like Await.
func (s *Store) AwaitMessage(ctx context.Context, key string, m proto.Message, patience time.Duration) error {
	value, err := s.Await(ctx, key, patience)
	if err != nil {
		return err
	}
	return unmarshal(key, value, m)
}
