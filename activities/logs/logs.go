package logs

import (
	"cmp"
	"context"
	"iter"

	"switchyard/activities/store/storekey"
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

// Attempt names one dispatch of an attempt of a task, an instance ("each[3]") or a
// batch; each has a log of its own. A batch is named by store.BatchName, and by the
// attempt and the claim of its first instance.
type Attempt struct {
	// Run is the home of a run, as keys of package store have it.
	Run, Task string
	// Generation of the run. Its attempts begin at 0 again.
	Generation int32
	// Attempt counts from 0. Claim is the number of the dispatch: an attempt
	// that was moved or whose node was silent is dispatched again.
	Attempt, Claim int32
	// Of names the one instance of a batch that is wanted, and Attempt and Claim are the
	// instance's then; empty: all are. Attempts sets it.
	Of string
	// lead is the attempt of the first instance, and leadClaim its claim, with Of.
	lead, leadClaim int32
}

// Compare orders the dispatches of one task or instance by when they were made. Attempts begin at 0 again when a task
// is put back, and claims never do within a generation.
func (a Attempt) Compare(b Attempt) int {
	return cmp.Or(cmp.Compare(a.Generation, b.Generation), cmp.Compare(a.Claim, b.Claim))
}

// Batch reports whether the log is that of a batch.
func (a Attempt) Batch() bool {
	_, _, _, ok := storekey.ParseBatchName(a.Task)
	return ok
}

func (a Attempt) chunkKey(n int64) string {
	if a.Of != "" {
		return storekey.LogChunk(a.Run, a.Generation, a.Task, a.lead, a.leadClaim, n)
	}
	return storekey.LogChunk(a.Run, a.Generation, a.Task, a.Attempt, a.Claim, n)
}
