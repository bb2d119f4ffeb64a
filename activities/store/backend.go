package store

import (
	"context"
	"iter"
	"time"
)

// backend holds the values of a Store. Keys either have passed storekey.Check or come from tests. Errors describe the
// failure without the key, which the Store adds; the error for a missing value is ErrNotFound. All methods may be called
// from several goroutines at once. No method is called after close.
type backend interface {
	put(ctx context.Context, key string, value []byte) error
	// putIfAbsent stores value unless the key has one. existed reports whether it had.
	putIfAbsent(ctx context.Context, key string, value []byte) (existed bool, err error)
	get(ctx context.Context, key string) ([]byte, error)
	// keys yields the keys that start with prefix in order, and ends after the first error.
	keys(ctx context.Context, prefix string) iter.Seq2[string, error]
	// findChunks reports which chunks are stored, or returns ErrSweeping.
	findChunks(ctx context.Context, digests [][]byte) (stored []bool, err error)
	// runs yields the run ids below runs/ in order, and ends after the first error.
	runs(ctx context.Context) iter.Seq2[string, error]
	// newest returns when the newest value of a run was stored, or the zero time if the run has no values.
	newest(ctx context.Context, run string) (time.Time, error)
	deleteRun(ctx context.Context, run string) error
	// delete removes the value of a key that belongs to no run, if there is one.
	delete(ctx context.Context, key string) error
	// deleteOlder removes the values that were stored before a time and whose keys start with prefix. The prefix must not
	// be in a run. It returns how many values it removed.
	deleteOlder(ctx context.Context, prefix string, before time.Time) (removed int, err error)
	// ensure returns the text under a key that belongs to no run, after storing the given one if there was none.
	ensure(ctx context.Context, key, text string) (string, error)
	// identify returns the text under IdentityKey, which ensure has stored.
	identify(ctx context.Context) (string, error)
	// location returns the location with which Open opens this backend.
	location() string
	close() error
}
