package store

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/store/storekey"
)

// ErrNotFound is in the chain of the error of a Get whose key has no value.
var ErrNotFound = errors.New("not found")

// ErrUnreadable is in the chain of the error of a Get whose value is not what was
// stored under the key, and never will be.
var ErrUnreadable = errors.New("unreadable")

// MaxValueBytes is the largest value that a gateway takes as a store, and a spool from its node.
const MaxValueBytes = 12 << 20

// Store holds values under keys. A value is there whole or not at all: a reader
// never sees half of one, and neither does a later reader when the writer is
// killed half-way. The last Put of a key wins. Its methods may be called from
// several goroutines and, on one bucket, from several processes at once.
type Store struct {
	backend  backend
	batches  batches
	identity atomic.Pointer[string] // nil: not known yet
	close    func() error
}

func newStore(b backend) *Store { return &Store{backend: b, close: sync.OnceValue(b.close)} }

// Put stores value under key.
func (s *Store) Put(ctx context.Context, key string, value []byte) error {
	if err := s.backend.put(ctx, key, value); err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	return nil
}

// PutIfAbsent stores value under a key of package storekey that has none, and says
// whether it had one, which then stays. Of several writers at once, in several
// processes, one is the first. When an answer of the store was lost on the way,
// existed may be said of the very value that this call has stored: whoever
// needs the winner reads it.
//
// A store that spools stores the value for now when the gateway does not answer
// before ctx ends, or for some seconds without a deadline; a value that was
// there then wins later.
func (s *Store) PutIfAbsent(ctx context.Context, key string, value []byte) (existed bool, err error) {
	if existed, err = s.backend.putIfAbsent(ctx, key, value); err != nil {
		return false, fmt.Errorf("store %s: %w", key, err)
	}
	return existed, nil
}

// Get returns the value under key. Without one the error is ErrNotFound, and
// that answer is cheap. A store that is away gives another error.
func (s *Store) Get(ctx context.Context, key string) ([]byte, error) {
	value, err := s.backend.get(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", key, err)
	}
	return value, nil
}

// PutMessage stores m, in the binary form of protobuf, under key. Equal messages give equal values.
func (s *Store) PutMessage(ctx context.Context, key string, m proto.Message) error {
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	return s.Put(ctx, key, value)
}

// PutMessageIfAbsent is PutIfAbsent of m in the binary form of protobuf.
func (s *Store) PutMessageIfAbsent(ctx context.Context, key string, m proto.Message) (existed bool, err error) {
	value, err := proto.Marshal(m)
	if err != nil {
		return false, fmt.Errorf("store %s: %w", key, err)
	}
	return s.PutIfAbsent(ctx, key, value)
}

// GetMessage reads into m what PutMessage stored under key. Without a value the
// error is ErrNotFound.
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

// Keys yields, in their order, the keys that start with prefix, and ends after
// the first error. In a folder it costs a look at each file below the last
// slash of prefix. A gateway lists only what starts with RunPrefix.
func (s *Store) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return wrapped(s.backend.keys(ctx, prefix), "list "+prefix)
}

// Runs yields, in their order, the ids of the runs that have values, and ends
// after the first error. It looks at no value. A gateway does not support it.
func (s *Store) Runs(ctx context.Context) iter.Seq2[string, error] {
	return wrapped(s.backend.runs(ctx), "list the runs of the store")
}

// Newest is when the newest value of a run was stored; the zero time when it has
// none. It costs a look at each of them. A gateway does not support it.
func (s *Store) Newest(ctx context.Context, run string) (time.Time, error) {
	newest, err := s.backend.newest(ctx, run)
	if err != nil {
		return time.Time{}, fmt.Errorf("look for the newest value of run %s: %w", run, err)
	}
	return newest, nil
}

// DeleteRun removes every value of a run. A run without values is no error. A
// gateway does not delete.
func (s *Store) DeleteRun(ctx context.Context, run string) error {
	if err := storekey.CheckRun(run); err != nil {
		return fmt.Errorf("delete the values of a run: %w", err)
	}
	if err := s.backend.deleteRun(ctx, run); err != nil {
		return fmt.Errorf("delete the values of run %s: %w", run, err)
	}
	return nil
}

// DeleteEnvironmentValue removes the value of a key of environments, if there is one. A gateway does not delete.
func (s *Store) DeleteEnvironmentValue(ctx context.Context, key string) error {
	if !strings.HasPrefix(key, storekey.EnvironmentsPrefix) {
		return fmt.Errorf("delete %s: it is no key of an environment", key)
	}
	if err := s.backend.delete(ctx, key); err != nil {
		return fmt.Errorf("delete %s: %w", key, err)
	}
	return nil
}

// DeleteCached removes the cached results that were stored before a time, and says
// how many. It costs a look at each. A gateway does not delete.
func (s *Store) DeleteCached(ctx context.Context, before time.Time) (removed int, err error) {
	if removed, err = s.backend.deleteOlder(ctx, storekey.CachedPrefix, before); err != nil {
		return removed, fmt.Errorf("delete old cached results: %w", err)
	}
	return removed, nil
}

// DeleteRequests removes what idempotency keys stood for before a time, and says how
// many. It costs a look at each. A gateway does not delete.
func (s *Store) DeleteRequests(ctx context.Context, before time.Time) (removed int, err error) {
	if removed, err = s.backend.deleteOlder(ctx, storekey.RequestsPrefix, before); err != nil {
		return removed, fmt.Errorf("delete old idempotency keys: %w", err)
	}
	return removed, nil
}

// DeleteAudit removes the entries of the audit that were stored before a time, and says how many values they were. It costs
// a look at each. A gateway does not delete.
func (s *Store) DeleteAudit(ctx context.Context, before time.Time) (removed int, err error) {
	if removed, err = s.backend.deleteOlder(ctx, storekey.AuditPrefix, before); err != nil {
		return removed, fmt.Errorf("delete old entries of the audit: %w", err)
	}
	return removed, nil
}

// Location is what Open opens this store by, from another process too unless it
// is mem://.
func (s *Store) Location() string { return s.backend.location() }

// Close ends the use of the store. One that spools first stores what it can
// within some seconds. A second Close does nothing.
func (s *Store) Close() error { return s.close() }

// wrapped adds what was being done to the error that ends a sequence.
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
