package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

// readBytes is how much Read collects before it returns. A slow client holds that much and one chunk in memory.
const readBytes = 128 << 10

// Read returns the content of a log from chunk number from on, up to about readBytes and one chunk (2 MiB). next is where
// to continue. The entries have their task, attempt, generation and claim. Those of a batch have the instance that
// printed them; if Attempt.Of is set, only that instance's are returned. ended is true once the end has been read and no
// more will come. If there is nothing new or no such log, Read costs one look for one key and returns next == from.
func Read(ctx context.Context, s Store, a Attempt, from int64) (entries []*v1.LogEntry, next int64, ended bool, err error) {
	entries, next, ended, err = read(ctx, s, a, from)
	for _, e := range entries {
		e.Position = "" // only writers use it
	}
	return entries, next, ended, err
}

// read does the work of Read and keeps the positions of the entries.
func read(ctx context.Context, s Store, a Attempt, from int64) (entries []*v1.LogEntry, next int64, ended bool, err error) {
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
			if e.Task == "" {
				e.Task, e.Attempt, e.Claim = a.Task, a.Attempt, a.Claim
			}
			e.Generation = a.Generation
			if a.Of == "" || a.Of == e.Task {
				entries = append(entries, e)
			}
		}
		size += len(value)
	}
	return entries, next, ended, nil
}

// HasEnd reports whether the chunk before number next ends a log.
func HasEnd(ctx context.Context, s Store, a Attempt, next int64) (bool, error) {
	_, after, ended, err := read(ctx, s, a, next-1)
	return ended && after == next, err
}

// Attempts lists the dispatches of a task or an instance that have printed something in any generation, the newest last. For an
// instance, Attempts also searches the logs of the batches that may contain it. A batch in which the instance has printed is
// listed with Attempt.Of set.
func Attempts(ctx context.Context, s Store, run, task string) ([]Attempt, error) {
	found, err := list(ctx, s, run, storekey.LogsPrefix(run, task))
	if err != nil {
		return nil, fmt.Errorf("list the logs of task %s of run %s: %w", task, run, err)
	}
	slices.SortFunc(found, Attempt.Compare)
	of, index, ok := storekey.ParseInstanceName(task)
	if !ok {
		return found, nil
	}
	batches, err := list(ctx, s, run, storekey.BatchLogsPrefix(run, of))
	if err != nil {
		return nil, fmt.Errorf("list the logs of the batches of task %s of run %s: %w", of, run, err)
	}
	for _, b := range batches {
		if _, first, last, _ := storekey.ParseBatchName(b.Task); index < first || last < index {
			continue
		}
		part, err := within(ctx, s, b, task)
		if err != nil {
			return nil, fmt.Errorf("look for %s in the log of %s of run %s: %w", task, b.Task, run, err)
		}
		if part != nil {
			found = append(found, *part)
		}
	}
	slices.SortStableFunc(found, Attempt.Compare)
	return found, nil
}

// Shared returns the log that a dispatch of an already started attempt continues: the newest log of an earlier dispatch,
// or a itself if none has printed anything. Only dispatches of remote types share a log.
func Shared(ctx context.Context, s Store, a Attempt) (Attempt, error) {
	all, err := list(ctx, s, a.Run, storekey.LogsPrefix(a.Run, a.Task))
	if err != nil {
		return a, fmt.Errorf("list the logs of task %s of run %s: %w", a.Task, a.Run, err)
	}
	shared := a
	for _, found := range all {
		isOlder := found.Claim <= a.Claim && (shared == a || found.Claim > shared.Claim)
		if found.Generation == a.Generation && found.Attempt == a.Attempt && isOlder {
			shared = found
		}
	}
	return shared, nil
}

// within returns the part of an instance in the log of a batch, or nil if the instance has printed nothing.
func within(ctx context.Context, s Store, batch Attempt, instance string) (*Attempt, error) {
	part := batch
	part.Of, part.lead, part.leadClaim = instance, batch.Attempt, batch.Claim
	for next := int64(0); ; {
		entries, after, ended, err := Read(ctx, s, part, next)
		if err != nil {
			return nil, err
		}
		if len(entries) > 0 {
			part.Attempt, part.Claim = entries[0].GetAttempt(), entries[0].GetClaim()
			return &part, nil
		}
		if ended || after == next {
			return nil, nil
		}
		next = after
	}
}

// Printers returns the instances that have printed into the log of a batch, each with the Attempt that did.
func Printers(ctx context.Context, s Store, batch Attempt) (map[string]Attempt, error) {
	found := map[string]Attempt{}
	for next := int64(0); ; {
		entries, after, ended, err := Read(ctx, s, batch, next)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			found[e.GetTask()] = Attempt{Run: batch.Run, Generation: e.GetGeneration(), Task: e.GetTask(), Attempt: e.GetAttempt(), Claim: e.GetClaim()}
		}
		if ended || after == next {
			return found, nil
		}
		next = after
	}
}

// Instances lists the logs of all instances of a task, ordered by number and age, and those of all its batches.
func Instances(ctx context.Context, s Store, run, task string) ([]Attempt, error) {
	all, err := list(ctx, s, run, storekey.InstanceLogsPrefix(run, task))
	if err != nil {
		return nil, fmt.Errorf("list the logs of the instances of task %s of run %s: %w", task, run, err)
	}
	found := slices.DeleteFunc(all, func(a Attempt) bool {
		batchOf, _, _, isBatch := storekey.ParseBatchName(a.Task)
		of, _, isInstance := storekey.ParseInstanceName(a.Task)
		return (!isBatch || batchOf != task) && (!isInstance || of != task)
	})
	slices.SortFunc(found, func(a, b Attempt) int {
		return cmp.Or(cmp.Compare(first(a), first(b)), a.Compare(b), cmp.Compare(a.Task, b.Task))
	})
	return found, nil
}

// first returns the number of the instance, or of the first possible instance of a batch.
func first(a Attempt) int {
	if _, from, _, ok := storekey.ParseBatchName(a.Task); ok {
		return from
	}
	_, index, _ := storekey.ParseInstanceName(a.Task)
	return index
}

// list lists the logs whose keys start with a prefix.
func list(ctx context.Context, s Store, run, prefix string) ([]Attempt, error) {
	var all []Attempt
	for key, err := range s.Keys(ctx, prefix) {
		if err != nil {
			return nil, err
		}
		of, _, ok := storekey.ParseLogChunk(key)
		a := Attempt{Run: run, Generation: of.Generation, Task: of.Task, Attempt: of.Attempt, Claim: of.Claim}
		if ok && (len(all) == 0 || all[len(all)-1] != a) { // the chunks of a log are adjacent
			all = append(all, a)
		}
	}
	return all, nil
}
