package store

import (
	"container/list"
	"path/filepath"
	"sync"

	"switchyard/activities/store/storekey"
)

// maxJournals is how many journals a folder keeps open.
const maxJournals = 128

// journals holds the open journals of the runs of a folder. It closes the least recently used ones.
type journals struct {
	mu     sync.Mutex
	byRun  map[string]*list.Element
	recent *list.List // of *opened, the most recently used first
}

type opened struct {
	run     string
	journal *journal
}

// of returns the journal of a run, locked. The caller must unlock it.
func (js *journals) of(f *folder, run string) *journal {
	for {
		j := js.get(f, run)
		j.mu.Lock()
		if !j.closed {
			return j
		}
		j.mu.Unlock()
	}
}

func (js *journals) get(f *folder, run string) *journal {
	js.mu.Lock()
	defer js.mu.Unlock()
	if js.byRun == nil {
		js.byRun, js.recent = map[string]*list.Element{}, list.New()
	}
	if at := js.byRun[run]; at != nil {
		js.recent.MoveToFront(at)
		return at.Value.(*opened).journal
	}
	if js.recent.Len() >= maxJournals {
		js.drop(js.recent.Back())
	}
	j := &journal{path: filepath.Join(f.path(storekey.RunPrefix(run)), journalName), index: map[string]span{}}
	js.byRun[run] = js.recent.PushFront(&opened{run, j})
	return j
}

// drop closes a journal. A holder of a journal's lock never waits for another journal, so the wait for the lock is short.
func (js *journals) drop(at *list.Element) {
	o := js.recent.Remove(at).(*opened)
	delete(js.byRun, o.run)
	o.journal.mu.Lock()
	defer o.journal.mu.Unlock()
	o.journal.closed = true
	o.journal.forget()
}

// forget closes the journal of a run.
func (js *journals) forget(run string) {
	js.mu.Lock()
	defer js.mu.Unlock()
	if at := js.byRun[run]; at != nil {
		js.drop(at)
	}
}

func (js *journals) close() {
	js.mu.Lock()
	defer js.mu.Unlock()
	for js.recent != nil && js.recent.Len() > 0 {
		js.drop(js.recent.Back())
	}
}
