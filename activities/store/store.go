package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"google.golang.org/protobuf/proto"

	"switchyard/activities/store/storekey"
)

// ErrNotFound is in the chain of the error of a Get if the key has no value.
var ErrNotFound = errors.New("not found")

// ErrUnreadable is in the chain of the error of a Get if the value is not what was stored and never will be.
var ErrUnreadable = errors.New("unreadable")

// MaxValueBytes is the largest value that a gateway or a spool accepts.
const MaxValueBytes = 12 << 20

// Store holds values under keys. Writes are atomic: a reader never sees half of a value, even if its writer is killed
// half-way. The last Put of a key wins. The methods may be called from several goroutines and, on one bucket or folder,
// from several processes at once.
type Store struct {
	backend  backend
	batches  batches
	identity atomic.Pointer[string] // nil if not known yet
	// identifying reads the identity again. identified is its newest answer, or nil before the first.
	identifying singleflight.Group
	identified  atomic.Pointer[identification]
	close       func() error
	arrival     time.Duration // longest wait of Await; 0 means no bound
}

func newStore(b backend) *Store { return &Store{backend: b, close: sync.OnceValue(b.close)} }

// Put stores value under key.
func (s *Store) Put(ctx context.Context, key string, value []byte) error {
	if err := s.backend.put(ctx, key, value); err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	return nil
}

// PutIfAbsent stores value under a key of package storekey unless the key has a value. existed reports whether it had
// one, which then stays. Of several concurrent writers, even in several processes, exactly one is the first. If an answer
// of the store was lost on the way, existed may be true because of the value that this very call has stored; a caller
// that needs the winner must read it.
//
// A store with a spool stores the value there if the gateway does not answer before ctx ends, or within some seconds if
// ctx has no deadline. If another value was there, that one wins later.
func (s *Store) PutIfAbsent(ctx context.Context, key string, value []byte) (existed bool, err error) {
	if existed, err = s.backend.putIfAbsent(ctx, key, value); err != nil {
		return false, fmt.Errorf("store %s: %w", key, err)
	}
	return existed, nil
}

// Get returns the value under key. If there is none, the error is ErrNotFound, and finding that out is cheap. A store
// that is away returns another error.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	value, err := s.backend.get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return value, nil
}

// PutMessage stores m under key in the binary form of protobuf. Equal messages give equal values.
func (s *Store) PutMessage(ctx context.Context, key string, m proto.Message) error {
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	return s.Put(ctx, key, value)
}

// PutMessageIfAbsent stores a message like PutIfAbsent, in the binary form of protobuf.
func (s *Store) PutMessageIfAbsent(ctx context.Context, key string, m proto.Message) (existed bool, err error) {
	value, err := proto.Marshal(m)
	if err != nil {
		return false, fmt.Errorf("store %s: %w", key, err)
	}
	return s.PutIfAbsent(ctx, key, value)
}

// GetMessage reads into m the message that PutMessage stored under key. If there is none, the error is ErrNotFound.
func (s *Store) GetMessage(ctx context.Context, key string, m proto.Message) error {
	value, err := s.Get(ctx, key)
	if err != nil {
		return err
	}
	return unmarshal(key, value, m)
}

func unmarshal(key string, value []byte, m proto.Message) error {
	if err := proto.Unmarshal(value, m); err != nil {
		return fmt.Errorf("read %s: %w: %w", key, ErrUnreadable, err)
	}
	return nil
}

// Keys yields, in order, the keys that start with prefix. It ends after the first error. In a folder it costs a look at
// each file below the last slash of prefix. A gateway lists only keys that start with RunPrefix.
func (s *Store) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return wrapped(s.backend.keys(ctx, prefix), "list "+prefix)
}

// Runs yields, in order, the ids of the runs that have values. It ends after the first error. It reads no values. A
// gateway does not support it.
func (s *Store) Runs(ctx context.Context) iter.Seq2[string, error] {
	return wrapped(s.backend.runs(ctx), "list the runs of the store")
}

// Newest returns when the newest value of a run was stored, or the zero time if the run has none. It costs a look at each
// value. A gateway does not support it.
func (s *Store) Newest(ctx context.Context, run string) (time.Time, error) {
	newest, err := s.backend.newest(ctx, run)
	if err != nil {
		return time.Time{}, fmt.Errorf("look for the newest value of run %s: %w", run, err)
	}
	return newest, nil
}

// DeleteRun removes every value of a run. It succeeds if there are none. A gateway does not support it.
func (s *Store) DeleteRun(ctx context.Context, run string) error {
	if err := storekey.CheckRun(run); err != nil {
		return fmt.Errorf("delete the values of a run: %w", err)
	}
	if err := s.backend.deleteRun(ctx, run); err != nil {
		return fmt.Errorf("delete the values of run %s: %w", run, err)
	}
	return nil
}

// Delete removes the value of a key of an environment, of the outbox or of a chunk, if there is one. A gateway does not support it.
func (s *Store) Delete(ctx context.Context, key string) error {
	if !slices.ContainsFunc([]string{storekey.EnvironmentsPrefix, storekey.OutboxPrefix, storekey.ChunksPrefix}, func(prefix string) bool { return strings.HasPrefix(key, prefix) }) {
		return fmt.Errorf("delete %s: it is not a key of an environment, of the outbox or of a chunk", key)
	}
	if err := s.backend.delete(ctx, key); err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	return nil
}

// expiring are the prefixes of the keys outside of runs whose values expire.
var expiring = []string{storekey.CachedPrefix, storekey.RequestsPrefix, storekey.AuditPrefix, storekey.SourcesPrefix}

// DeleteOlder removes the values that were stored before a time and whose keys start with a prefix: that of cached results, of
// idempotency keys, of the audit, or of sources. It returns how many, and costs a look at each. A gateway does not support it.
func (s *Store) DeleteOlder(ctx context.Context, prefix string, before time.Time) (removed int, err error) {
	if !slices.Contains(expiring, prefix) {
		return 0, fmt.Errorf("delete old values: those under %s do not expire", prefix)
	}
	if removed, err = s.backend.deleteOlder(ctx, prefix, before); err != nil {
		return removed, fmt.Errorf("delete old values under %s: %w", prefix, err)
	}
	return removed, nil
}

// Location returns the location with which Open opens this store, in other processes too unless it is mem://.
func (s *Store) Location() string { return s.backend.location() }

// Close releases the store. A store with a spool first uploads what it can within some seconds. A second Close is a
// no-op.
func (s *Store) Close() error { return s.close() }

// wrapped adds the operation to the error that ends a sequence.
func wrapped(seq iter.Seq2[string, error], doing string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for text, err := range seq {
			if err != nil {
				err = fmt.Errorf("%s: %w", doing, err)
			}
			if !yield(text, err) || err != nil {
				return
			}
		}
	}
}
