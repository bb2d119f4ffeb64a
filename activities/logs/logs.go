package logs

import (
	"context"
	"iter"

	"switchyard/activities/store"
)

// The streams of a task.
const (
	Stdout = "stdout"
	Stderr = "stderr"
)

// Store is where logs are kept; *store.Store is one. Put replaces a value whole,
// Get returns store.ErrNotFound for a key without one, Keys yields the keys that
// start with a prefix. All may be called from several goroutines.
type Store interface {
	Put(ctx context.Context, key string, value []byte) error
	Get(ctx context.Context, key string) ([]byte, error)
	Keys(ctx context.Context, prefix string) iter.Seq2[string, error]
}

// Attempt names one dispatch of an attempt of a task; each has a log of its own.
type Attempt struct {
	Run, Task string
	// Attempt counts from 0. Claim is the number of the dispatch: an attempt
	// that was moved or whose node was silent is dispatched again.
	Attempt, Claim int32
}

func (a Attempt) chunkKey(n int64) string {
	return store.LogChunkKey(a.Run, a.Task, a.Attempt, a.Claim, n)
}
