package store

import (
	"context"
	"iter"
	"time"
)

// backend is where the values of a Store are. Keys have passed storekey.Check or are
// those of tests; errors say what failed and leave the key to the Store, but an
// error of a missing value is ErrNotFound. All methods may be called from
// several goroutines. Nothing is called after close.
type backend interface {
	put(ctx context.Context, key string, value []byte) error
	// putIfAbsent stores value unless there is one already, which existed says.
	putIfAbsent(ctx context.Context, key string, value []byte) (existed bool, err error)
	get(ctx context.Context, key string) ([]byte, error)
	// keys yields what starts with prefix in order, and ends after the first error.
	keys(ctx context.Context, prefix string) iter.Seq2[string, error]
	// runs yields the run ids below runs/ in order, and ends after the first error.
	runs(ctx context.Context) iter.Seq2[string, error]
	// newest is when the newest value of a run was stored; zero without values.
	newest(ctx context.Context, run string) (time.Time, error)
	deleteRun(ctx context.Context, run string) error
	// delete removes the value of a key of no run, if there is one.
	delete(ctx context.Context, key string) error
	// deleteOlder removes what starts with prefix, which is none of a run, and was
	// stored before a time, and says how many values it has removed.
	deleteOlder(ctx context.Context, prefix string, before time.Time) (removed int, err error)
	// identify returns the text under IdentityKey, and makes it if there is none.
	identify(ctx context.Context) (string, error)
	// location is what Open opens it by.
	location() string
	close() error
}
