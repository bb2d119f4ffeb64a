package sse

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"switchyard/gateway/eventstream"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runevents"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// maxEntries and maxEntryBytes bound the events of a run that a feed keeps for slower followers.
	maxEntries    = 4096
	maxEntryBytes = 4 << 20
	// feedInterval is the longest time between two checks of the history length of a run.
	feedInterval = time.Second
)

// runFeed reads the events of one run once for any number of followers, and keeps the newest ones.
type runFeed struct {
	id      string
	events  *runevents.Reader
	pollers *runview.Pollers
	log     *slog.Logger
	cancel  context.CancelFunc
	// followers is guarded by runFeeds.mu.
	followers int

	mu      sync.Mutex
	entries []*feedEntry
	first   int64 // number of the first entry
	bytes   int   // size of the entries
	// start is the position before the first entry.
	start runevents.Position
	// newest is the position after the last event that was read.
	newest  runevents.Position
	subject runevents.Subject
	// starts holds the starts that only heartbeats report so far.
	starts map[startKey]*feedEntry
	end    *v1.Run // the run, once it has ended
	done   bool
	err    error         // why the feed stopped, if the run has not ended
	change chan struct{} // closed at the next change
}

// feedEntry is an encoded event of a feed. It is immutable.
type feedEntry struct {
	event *v1.Event
	frame []byte
	// at is the position after the event. A start that only a heartbeat reports has no position.
	at runevents.Position
}

// isStart reports whether the event is a start that only a heartbeat reports.
func (e *feedEntry) isStart() bool { return e.event.GetId() == "" }

// startKey identifies an attempt whose start a heartbeat reports.
type startKey struct {
	task  string
	claim int32
}

// newEntry encodes an event. at is the position after it.
func newEntry(e *v1.Event, at runevents.Position) (*feedEntry, error) {
	data, err := marshalMessage(e)
	if err != nil {
		return nil, err
	}
	name := e.GetEvent()
	if e.GetId() == "" {
		name = startEvent
	}
	return &feedEntry{event: e, at: at, frame: eventstream.Frame(name, at.Text(e), data)}, nil
}

// run reads events until the run has ended or ctx is done.
func (f *runFeed) run(ctx context.Context) {
	poller, release := f.pollers.Watch(f.id)
	defer release()
	tail := f.events.Tail(f.start)
	var seen, history int64
	read := false // whether the existing events have been read
	for {
		n := poller.Since(seen)
		if n.Done && n.Err != nil {
			f.finish(nil, n.Err)
			return
		}
		var err error
		if n.Version > 0 && (!read || n.Version > seen || n.History != history || n.Done) {
			read, err = true, f.read(ctx, poller, tail)
			if err == nil {
				seen, history = n.Version, n.History
			}
		}
		switch {
		case err == nil && n.Done:
			f.finish(n.Run, nil)
			return
		case ctx.Err() != nil:
			f.finish(nil, ctx.Err())
			return
		case err != nil && rpcerror.IsPermanent(err):
			f.finish(nil, err)
			return
		case err != nil:
			f.log.Warn("cannot read the events of a followed run; the feed tries again", "run", f.id, "error", err)
			read = false
		}
		changed := n.Changed
		if err != nil || n.Done {
			changed = nil
		}
		select {
		case <-changed:
		case <-time.After(feedInterval):
		case <-ctx.Done():
		}
	}
}

// read publishes the new events.
func (f *runFeed) read(ctx context.Context, poller *runview.Poller, tail *runevents.Tail) error {
	var subject runevents.Subject
	var starts []*v1.Event
	_ = poller.Check(func(v *runview.View) error {
		subject, starts = runevents.SubjectOf(v), runevents.Starts(v)
		return nil
	})
	var read []*feedEntry
	err := tail.Read(ctx, subject, func(e *v1.Event, after runevents.Position) error {
		entry, err := newEntry(e, after)
		if err != nil {
			return err
		}
		if read = append(read, entry); len(read) >= maxEntries/4 {
			f.publish(subject, read, nil)
			read = nil
		}
		return nil
	})
	if err != nil {
		f.publish(subject, read, nil)
		return err
	}
	f.publish(subject, read, starts)
	return nil
}

// publish adds entries, and the new starts that heartbeats report. starts is nil if there are more events to read.
func (f *runFeed) publish(subject runevents.Subject, read []*feedEntry, starts []*v1.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.first + int64(len(f.entries))
	f.subject = subject
	for _, e := range read {
		f.add(e)
		delete(f.starts, startKey{e.event.GetTask(), e.event.GetClaim()})
	}
	for _, e := range starts {
		key := startKey{e.GetTask(), e.GetClaim()}
		if f.starts[key] != nil {
			continue
		}
		entry, err := newEntry(e, runevents.Position{})
		if err != nil {
			continue // the event will be repeated with an id
		}
		f.starts[key] = entry
		f.add(entry)
	}
	if f.first+int64(len(f.entries)) > before {
		f.wake()
	}
}

// add appends an entry, and drops the oldest entries beyond the limits.
func (f *runFeed) add(e *feedEntry) {
	f.entries = append(f.entries, e)
	f.bytes += len(e.frame)
	if !e.isStart() {
		f.newest = e.at
	}
	for len(f.entries) > maxEntries || f.bytes > maxEntryBytes && len(f.entries) > 1 {
		oldest := f.entries[0]
		if !oldest.isStart() {
			f.start = oldest.at
		}
		f.bytes -= len(oldest.frame)
		f.entries, f.first = f.entries[1:], f.first+1
	}
}

func (f *runFeed) finish(end *v1.Run, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.done, f.end, f.err = true, end, err
	f.wake()
}

func (f *runFeed) wake() {
	close(f.change)
	f.change = make(chan struct{})
}

// hasRead reports whether the feed has read past a position, which proves that the position is valid.
func (f *runFeed) hasRead(at runevents.Position) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return at.IsStart() || at.Generation() == f.newest.Generation() && f.newest.Covers(at)
}

// feedPlace is the position of a follower in the entries of a feed.
type feedPlace struct {
	next int64 // number of the next entry
	// head is the number of the next entry when the follower joined. Attempts that were running then are in starts, not in
	// older entries.
	head   int64
	starts []*feedEntry
}

// join returns the place of a follower at a position, or false if the feed no longer keeps the next event.
func (f *runFeed) join(at runevents.Position) (feedPlace, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !at.Covers(f.start) {
		return feedPlace{}, false
	}
	p := feedPlace{next: f.first, head: f.first + int64(len(f.entries))}
	for _, e := range f.starts {
		p.starts = append(p.starts, e)
	}
	slices.SortFunc(p.starts, func(a, b *feedEntry) int {
		return cmp.Or(a.event.GetAt().AsTime().Compare(b.event.GetAt().AsTime()), cmp.Compare(a.event.GetTask(), b.event.GetTask()))
	})
	return p, true
}

// feedNews holds what a follower has not sent yet.
type feedNews struct {
	entries []*feedEntry
	lost    bool // the feed no longer keeps the next event
	done    bool
	end     *v1.Run
	err     error
	changed <-chan struct{}
}

// since returns the changes after a place.
func (f *runFeed) since(p feedPlace) feedNews {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := feedNews{done: f.done, end: f.end, err: f.err, changed: f.change, lost: p.next < f.first}
	if !n.lost {
		n.entries = f.entries[p.next-f.first:]
	}
	return n
}

// current returns the subject of the newest read, or fallback if there was none.
func (f *runFeed) current(fallback runevents.Subject) runevents.Subject {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.subject == (runevents.Subject{}) {
		return fallback
	}
	return f.subject
}
