package runlogs

import (
	"context"

	"switchyard/activities/logs"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// A generation of a run keeps what completed in earlier generations and repeats the rest. The store has the logs of all
// generations, and the log of one batch may have instances of both kinds. For each instance, the newest attempt is sent.

// isOfGeneration reports whether a log of a fan-out may have wanted entries: those of the requested generation, or of any
// if the client requested none.
func (f *Follower) isOfGeneration(of *fanOut, a logs.Attempt) bool {
	if f.req.Generation != nil {
		return a.Generation == f.req.GetGeneration()
	}
	_, index, ok := names.ParseInstanceName(nameOf(a))
	return !ok || f.isCurrent(of, index, a.Generation)
}

// isCurrent reports whether the newest attempt of an instance may belong to a generation: the fan-out still has the
// instance and will not run it again.
func (f *Follower) isCurrent(of *fanOut, index int, generation int32) bool {
	return index < int(of.info.GetCount()) && (generation == f.generation || !of.open[index])
}

// isSuperseded reports whether an entry in a fan-out's log belongs to an attempt that a later one has replaced.
func (f *Follower) isSuperseded(of *fanOut, e *v1.LogEntry) bool {
	_, index, ok := names.ParseInstanceName(e.GetTask())
	if !ok {
		return false
	}
	if f.req.Generation == nil && !f.isCurrent(of, index, e.GetGeneration()) {
		return true
	}
	newest, known := of.newest[index]
	return known && logs.Attempt{Generation: e.GetGeneration(), Claim: e.GetClaim()}.Compare(newest) < 0
}

// newestPrinters returns the newest attempt that has printed, for each instance that several logs may cover. For a stream
// that resumes others, it considers the logs that they have sent.
func (f *Follower) newestPrinters(ctx context.Context, found []logs.Attempt) (map[int]logs.Attempt, error) {
	newest := map[int]logs.Attempt{}
	if f.req.Attempt != nil {
		return newest, nil // every dispatch of the attempt is wanted
	}
	note := func(a logs.Attempt) {
		_, index, ok := names.ParseInstanceName(nameOf(a))
		if have, known := newest[index]; ok && (!known || have.Compare(a) < 0) {
			newest[index] = a
		}
	}
	shared := overlapping(found)
	for k, a := range found {
		if _, sent := f.resume[keyOf(a)]; !shared[k] || len(f.resume) > 0 && !sent {
			continue
		}
		if !a.Batch() || a.Of != "" {
			note(a)
			continue
		}
		printers, err := logs.Printers(ctx, f.store, a)
		if err != nil {
			return nil, err
		}
		for _, p := range printers {
			note(p)
		}
	}
	return newest, nil
}

// overlapping marks the logs that may share an instance with another one. The logs must be sorted by their first
// instances.
func overlapping(found []logs.Attempt) []bool {
	marked := make([]bool, len(found))
	widest := -1 // the earlier log that extends farthest
	for k, a := range found {
		first, last := extentOf(a)
		if widest >= 0 {
			if _, end := extentOf(found[widest]); first <= end {
				marked[widest], marked[k] = true, true
				if last <= end {
					continue
				}
			}
		}
		widest = k
	}
	return marked
}

// extentOf returns the first and the last instance that a log may cover.
func extentOf(a logs.Attempt) (first, last int) {
	if _, first, last, ok := storekey.ParseBatchName(nameOf(a)); ok {
		return first, last
	}
	_, index, _ := names.ParseInstanceName(nameOf(a))
	return index, index
}
