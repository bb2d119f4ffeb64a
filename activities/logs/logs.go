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

// Store holds the logs; *store.Store implements it. Put replaces a value atomically, Get returns store.ErrNotFound if a
// key has no value, and Keys yields the keys that start with a prefix. All methods may be called from several goroutines
// at once.
type Store interface {
	Put(ctx context.Context, key string, value []byte) error
	Get(ctx context.Context, key string) ([]byte, error)
	Keys(ctx context.Context, prefix string) iter.Seq2[string, error]
}

// Attempt identifies one dispatch of an attempt of a task, an instance ("each[3]") or a batch. Each dispatch has a log of
// its own. A batch is identified by its store.BatchName and by the attempt and the claim of its first instance.
type Attempt struct {
	// Run is the home of a run, in the form of store keys.
	Run, Task string
	// Generation is the generation of the run. Attempts begin at 0 in each.
	Generation int32
	// Attempt counts from 0. Claim is the number of the dispatch: an attempt that was moved or whose node was silent is
	// dispatched again.
	Attempt, Claim int32
	// Of selects one instance of a batch; Attempt and Claim are then those of the instance. If it is empty, all instances
	// are selected. The function Attempts sets it.
	Of string
	// lead and leadClaim are the attempt and claim of the batch's first instance. They are set together with Of.
	lead, leadClaim int32
}

// Compare orders the dispatches of one task or instance by age. It ignores attempts, which begin at 0 again when a task
// is put back; claims never repeat within a generation.
func (a Attempt) Compare(b Attempt) int {
	return cmp.Or(cmp.Compare(a.Generation, b.Generation), cmp.Compare(a.Claim, b.Claim))
}

// Batch reports whether the log belongs to a batch.
func (a Attempt) Batch() bool {
	_, _, _, ok := storekey.ParseBatchName(a.Task)
	return ok
}

func (a Attempt) chunkKey(n int64) string {
	attempt, claim := a.printed()
	return storekey.LogChunk(a.Run, a.Generation, a.Task, attempt, claim, n)
}

// prefix returns the prefix of the keys of all chunks.
func (a Attempt) prefix() string {
	attempt, claim := a.printed()
	return storekey.LogPrefix(a.Run, a.Generation, a.Task, attempt, claim)
}

// printed returns the attempt and the claim under which the log is stored.
func (a Attempt) printed() (attempt, claim int32) {
	if a.Of != "" {
		return a.lead, a.leadClaim
	}
	return a.Attempt, a.Claim
}
