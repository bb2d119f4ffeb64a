package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
)

// readBytes is how much Read gathers before it returns.
const readBytes = 1 << 20

// Read returns what there is of a log from chunk number from on, at most about
// readBytes and one chunk (2 MiB) of it; next is where to go on. The entries
// have their task and attempt. ended is true in the call that reads the end: no more
// will come. While nothing new is there, Read costs one look for one key and
// returns next == from; a log that does not exist is the same.
func Read(ctx context.Context, s Store, a Attempt, from int64) (entries []*v1.LogEntry, next int64, ended bool, err error) {
	next = from
	for size := 0; size < readBytes && !ended; next++ {
		value, err := s.Get(ctx, a.chunkKey(next))
		if errors.Is(err, store.ErrNotFound) {
			break
		}
		if err != nil {
			return nil, from, false, err
		}
		var chunk []*v1.LogEntry
		if chunk, ended, err = decode(value); err != nil {
			return nil, from, false, fmt.Errorf("read %s: %w", a.chunkKey(next), err)
		}
		for _, e := range chunk {
			e.Task, e.Attempt = a.Task, a.Attempt
		}
		entries = append(entries, chunk...)
		size += len(value)
	}
	return entries, next, ended, nil
}

// Attempts lists the attempts of a task that have printed something, the newest
// last. Of an attempt that was dispatched more than once it has the dispatch
// with the highest claim.
func Attempts(ctx context.Context, s Store, run, task string) ([]Attempt, error) {
	newest := map[int32]Attempt{}
	for key, err := range s.Keys(ctx, store.LogsPrefix(run, task)) {
		if err != nil {
			return nil, fmt.Errorf("list the logs of task %s of run %s: %w", task, run, err)
		}
		_, _, attempt, claim, _, ok := store.ParseLogChunkKey(key)
		if have, seen := newest[attempt]; ok && (!seen || claim > have.Claim) {
			newest[attempt] = Attempt{run, task, attempt, claim}
		}
	}
	return slices.SortedFunc(maps.Values(newest), func(a, b Attempt) int {
		return cmp.Compare(a.Attempt, b.Attempt)
	}), nil
}
