package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

// readBytes is how much Read gathers before it returns. Each client that reads slowly holds as much, and a chunk.
const readBytes = 128 << 10

// Read returns what there is of a log from chunk number from on, at most about
// readBytes and one chunk (2 MiB) of it; next is where to continue. The entries
// have their task and attempt: those of a batch that of the instance that printed
// them, and of one only those of Attempt.Of if that is set. ended is true in the call that reads the end: no more
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
			if e.Task == "" {
				e.Task, e.Attempt = a.Task, a.Attempt
			}
			if a.Of == "" || a.Of == e.Task {
				entries = append(entries, e)
			}
		}
		size += len(value)
	}
	return entries, next, ended, nil
}

// Attempts lists the attempts of a task or an instance that have printed something,
// the newest last. Of an attempt that was dispatched more than once it has the dispatch
// with the highest claim. For an instance it also reads the logs of the batches that it
// may have been in: those in which it has printed are listed with Attempt.Of set.
func Attempts(ctx context.Context, s Store, run, task string) ([]Attempt, error) {
	all, err := list(ctx, s, run, storekey.LogsPrefix(run, task))
	if err != nil {
		return nil, fmt.Errorf("list the logs of task %s of run %s: %w", task, run, err)
	}
	found := newest(all)
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
	slices.SortStableFunc(found, func(a, b Attempt) int { return cmp.Compare(a.Attempt, b.Attempt) })
	return found, nil
}

// within is the part of an instance in the log of a batch, nil when it has printed nothing.
func within(ctx context.Context, s Store, batch Attempt, instance string) (*Attempt, error) {
	part := batch
	part.Of, part.lead = instance, batch.Attempt
	for next := int64(0); ; {
		entries, after, ended, err := Read(ctx, s, part, next)
		if err != nil {
			return nil, err
		}
		if len(entries) > 0 {
			part.Attempt = entries[0].GetAttempt()
			return &part, nil
		}
		if ended || after == next {
			return nil, nil
		}
		next = after
	}
}

// Instances lists the logs of all instances of a task, by their numbers and attempts,
// and those of all batches of it.
func Instances(ctx context.Context, s Store, run, task string) ([]Attempt, error) {
	all, err := list(ctx, s, run, storekey.InstanceLogsPrefix(run, task))
	if err != nil {
		return nil, fmt.Errorf("list the logs of the instances of task %s of run %s: %w", task, run, err)
	}
	own := map[string][]Attempt{}
	var batches []Attempt
	for _, a := range all {
		if of, _, _, ok := storekey.ParseBatchName(a.Task); ok && of == task {
			batches = append(batches, a)
		} else if of, _, ok := storekey.ParseInstanceName(a.Task); ok && of == task {
			own[a.Task] = append(own[a.Task], a)
		}
	}
	found := batches
	for _, attempts := range own {
		found = append(found, newest(attempts)...)
	}
	slices.SortFunc(found, func(a, b Attempt) int {
		return cmp.Or(cmp.Compare(first(a), first(b)), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Claim, b.Claim), cmp.Compare(a.Task, b.Task))
	})
	return found, nil
}

// first is the number of the instance, or of the first one that a batch may have.
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
		_, task, attempt, claim, _, ok := storekey.ParseLogChunk(key)
		a := Attempt{Run: run, Task: task, Attempt: attempt, Claim: claim}
		if ok && (len(all) == 0 || all[len(all)-1] != a) { // the chunks of a log follow each other
			all = append(all, a)
		}
	}
	return all, nil
}

// newest are the attempts of one task or instance in order, each by its newest dispatch.
func newest(all []Attempt) []Attempt {
	found := map[int32]Attempt{}
	for _, a := range all {
		if have, seen := found[a.Attempt]; !seen || a.Claim > have.Claim {
			found[a.Attempt] = a
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b Attempt) int { return cmp.Compare(a.Attempt, b.Attempt) })
}
