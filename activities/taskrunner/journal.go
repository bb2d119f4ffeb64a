package taskrunner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"

	"switchyard/activities/executor"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/workflows/names"
)

// journal implements executor.Journal for a member of an attempt. Each dispatch writes a journal of its own, which names
// the journal that it continues. Thus a dispatch that has lost its lease cannot write into the journal of the next one.
type journal struct {
	w      *work
	m      *member
	own    storekey.Journal
	before []storekey.Journal // the journals that this one continues, oldest first
	found  bool               // before is complete
	next   int                // number of the next entry
	slot   int                // slot of the next archive
}

var _ executor.Journal = (*journal)(nil)

// journalFrom is the value at the key storekey.Journal.From.
type journalFrom struct {
	Prefix string `json:"prefix"`
}

// journalArchive is the value at the key storekey.Journal.Archive.
type journalArchive struct {
	Slot  int `json:"slot"`
	Parts int `json:"parts"`
	Size  int `json:"size"`
}

// archivePart is the size of a part of an archive, in bytes.
const archivePart = 8 << 20

func (w *work) newJournal(m *member) *journal {
	req := w.attempt.req
	return &journal{w: w, m: m, own: storekey.Journal{
		Home: names.Home(req.GetRunId(), req.GetChain()), Task: m.name, Generation: req.GetGeneration(), Claim: m.claim,
	}}
}

func (j *journal) store() *store.Store { return j.w.node.Store }

// Entries returns the entries of all journals that this one continues.
func (j *journal) Entries(ctx context.Context) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		if err := j.findBefore(ctx); err != nil {
			yield(nil, err)
			return
		}
		for _, before := range j.before {
			keys, err := j.entryKeys(ctx, before)
			if err != nil {
				yield(nil, err)
				return
			}
			for _, key := range keys {
				entry, err := j.read(ctx, key)
				if !yield(entry, err) || err != nil {
					return
				}
			}
		}
	}
}

// findBefore fills before with the journals that this one continues. The newest is the one that the run names, or a newer
// one of this generation.
func (j *journal) findBefore(ctx context.Context) error {
	if j.found {
		return nil
	}
	newest, known, err := j.newest(ctx)
	if err != nil {
		return fmt.Errorf("find the journal of %s: %w", j.m.name, err)
	}
	for known {
		j.before = append(j.before, newest)
		var from journalFrom
		data, err := j.read(ctx, newest.From())
		switch {
		case errors.Is(err, store.ErrNotFound):
			known = false
			continue
		case err == nil:
			err = json.Unmarshal(data, &from)
		}
		if err != nil {
			return fmt.Errorf("read the journal of %s: %w", j.m.name, err)
		}
		newest, _, known = storekey.ParseJournal(from.Prefix)
	}
	slices.Reverse(j.before)
	j.found = true
	return nil
}

// newest returns the newest journal of an earlier dispatch, or false if there is none.
func (j *journal) newest(ctx context.Context) (found storekey.Journal, ok bool, err error) {
	found, _, ok = storekey.ParseJournal(j.m.checkpoint.GetJournal())
	isFromReset := ok && found.Home != j.own.Home // any journal written since the reset is newer
	err = j.w.node.records().insist(ctx, func() error {
		for key, err := range j.store().Keys(ctx, storekey.JournalsPrefix(j.own.Home, j.own.Task)) {
			if err != nil {
				return err
			}
			other, _, valid := storekey.ParseJournal(key)
			if !valid || other.Task != j.own.Task || other.Generation != j.own.Generation || other.Claim >= j.own.Claim {
				continue
			}
			if !ok || isFromReset || cmp.Or(cmp.Compare(other.Generation, found.Generation), cmp.Compare(other.Claim, found.Claim)) > 0 {
				found, ok, isFromReset = other, true, false
			}
		}
		return nil
	})
	return found, ok, err
}

// entryKeys returns the keys of a journal's entries in order.
func (j *journal) entryKeys(ctx context.Context, of storekey.Journal) (keys []string, err error) {
	err = j.w.node.records().insist(ctx, func() error {
		keys = nil
		for key, err := range j.store().Keys(ctx, of.Prefix()) {
			if err != nil {
				return err
			}
			if _, rest, _ := storekey.ParseJournal(key); isEntry(rest) {
				keys = append(keys, key)
			}
		}
		return nil
	})
	slices.SortFunc(keys, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return keys, err
}

func isEntry(rest string) bool {
	_, ok := storekey.ParseEntry(rest)
	return ok
}

func (j *journal) read(ctx context.Context, key string) (data []byte, err error) {
	err = j.w.node.records().insist(ctx, func() (err error) {
		data, err = j.store().Get(ctx, key)
		return err
	})
	return data, err
}

// put stores a value, and waits while the store is away.
func (j *journal) put(ctx context.Context, key string, value []byte) error {
	return j.w.node.records().insist(ctx, func() error { return j.store().Put(ctx, key, value) })
}

// begin stores which journal this one continues. That happens before anything else is stored in this journal.
func (j *journal) begin(ctx context.Context) error {
	if j.next > 0 || j.slot > 0 {
		return nil
	}
	if err := j.findBefore(ctx); err != nil {
		return err
	}
	if n := len(j.before); n > 0 {
		from, err := json.Marshal(journalFrom{Prefix: j.before[n-1].Prefix()})
		if err != nil {
			return err
		}
		if err := j.put(ctx, j.own.From(), from); err != nil {
			return err
		}
	}
	j.w.checkpointer.setJournal(j.own.Prefix())
	return nil
}

// Append stores an entry with the values of secrets masked by maskEntry.
func (j *journal) Append(ctx context.Context, entry []byte) error {
	if len(entry) > executor.MaxJournalEntry {
		return fmt.Errorf("record a turn of %s: it has %d bytes; at most %d are recorded", j.m.name, len(entry), executor.MaxJournalEntry)
	}
	if err := j.begin(ctx); err != nil {
		return err
	}
	if err := j.put(ctx, j.own.Entry(j.next), maskEntry(j.w.secrets.masks, entry)); err != nil {
		return fmt.Errorf("record a turn of %s: %w", j.m.name, err)
	}
	j.next++
	return nil
}

// Archive returns the newest archive of the journals that this one continues, or nil if there is none.
func (j *journal) Archive(ctx context.Context) ([]byte, error) {
	if err := j.findBefore(ctx); err != nil {
		return nil, err
	}
	for _, of := range slices.Backward(j.before) {
		text, err := j.read(ctx, of.Archive())
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		var newest journalArchive
		if err == nil {
			err = json.Unmarshal(text, &newest)
		}
		if err != nil {
			return nil, fmt.Errorf("read the archive of %s: %w", j.m.name, err)
		}
		data := []byte{}
		for part := range newest.Parts {
			piece, err := j.read(ctx, of.ArchivePart(newest.Slot, part))
			if err != nil {
				return nil, fmt.Errorf("read the archive of %s: %w", j.m.name, err)
			}
			data = append(data, piece...)
		}
		if len(data) != newest.Size {
			return nil, fmt.Errorf("the archive of %s has %d bytes instead of %d", j.m.name, len(data), newest.Size)
		}
		return data, nil
	}
	return nil, nil
}

// SaveArchive stores an archive next to the newest one, and replaces that once the new one is complete.
func (j *journal) SaveArchive(ctx context.Context, data []byte) error {
	if len(data) > executor.MaxJournalArchive {
		return fmt.Errorf("archive the files of %s: they have %d bytes; at most %d are archived", j.m.name, len(data), executor.MaxJournalArchive)
	}
	if err := j.begin(ctx); err != nil {
		return err
	}
	newest := journalArchive{Slot: j.slot % 2, Size: len(data)}
	j.slot++
	for piece := range slices.Chunk(data, archivePart) {
		if err := j.put(ctx, j.own.ArchivePart(newest.Slot, newest.Parts), piece); err != nil {
			return fmt.Errorf("archive the files of %s: %w", j.m.name, err)
		}
		newest.Parts++
	}
	text, err := json.Marshal(newest)
	if err == nil {
		err = j.put(ctx, j.own.Archive(), text)
	}
	if err != nil {
		return fmt.Errorf("archive the files of %s: %w", j.m.name, err)
	}
	return nil
}
