package sse

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"log/slog"
	"sync"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/sync/errgroup"

	"switchyard/gateway/eventstream"
	"switchyard/gateway/rpcerror"
	"switchyard/gateway/runindex"
	"switchyard/gateway/runview"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// roundInterval is the shortest time between two rounds of the feed of all runs.
	roundInterval = time.Second
	// maxRuns bounds the number of open runs, and of recently ended runs, that the feed reads.
	maxRuns = 1000
	// maxLooks bounds the number of open runs that one round reads, and looksAtOnce how many of them concurrently.
	maxLooks    = 100
	looksAtOnce = 8
	// idleRounds is the number of rounds that the feed continues without followers, so that a returning client misses
	// nothing.
	idleRounds = 60
	// lag bounds the delay with which the feed may learn of an event and of its run.
	lag = time.Minute
)

// allFeed reads the events of all runs once for any number of followers, and keeps the newest ones.
//
// Each round lists the open runs and the runs that have ended recently, checks the open ones that are due, and reads the
// events of those with new history.
type allFeed struct {
	recentRuns
	log    *slog.Logger
	pause  time.Duration // between two rounds
	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu        sync.Mutex
	followers int
	running   bool
	// name is a part of the event ids. It distinguishes the feed from earlier feeds and from those of other gateways.
	name    string
	entries []*allEntry
	first   int64 // number of the first entry
	bytes   int
	// complete is the time before which every event has been published.
	complete time.Time
	changed  chan struct{}
}

// allEntry is an encoded event in the feed of all runs. It is immutable.
type allEntry struct {
	event *v1.Event
	owner string // of its run
	frame []byte
}

// followedRun is a run that the feed reads.
type followedRun struct {
	tail      *runTail
	owner     string
	execution string // as of the last read
	history   int64
	looked    time.Time // every event before it has been read
	closed    bool      // the run has ended and every event has been read
}

func newAllFeed(runs recentRuns, pause time.Duration, log *slog.Logger) *allFeed {
	ctx, cancel := context.WithCancel(context.Background())
	return &allFeed{recentRuns: runs, log: log, pause: pause, ctx: ctx, cancel: cancel, changed: make(chan struct{})}
}

// follow keeps the feed reading until release is called, and for idleRounds longer.
func (f *allFeed) follow() (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.followers++
	if !f.running && f.ctx.Err() == nil {
		name := make([]byte, 6)
		_, _ = rand.Read(name) // never fails
		f.name, f.running, f.entries, f.first, f.bytes, f.complete = hex.EncodeToString(name), true, nil, 0, 0, time.Now()
		f.wg.Go(f.run)
	}
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.followers--
	})
}

// close stops the feed and waits for it.
func (f *allFeed) close() {
	f.mu.Lock()
	f.cancel()
	f.mu.Unlock()
	f.wg.Wait()
}

// run makes rounds until the feed has had no followers for idleRounds.
func (f *allFeed) run() {
	began := time.Now()
	runs := map[string]*followedRun{}
	for idle := 0; ; {
		start := time.Now()
		if err := f.round(runs, began); err != nil && f.ctx.Err() == nil {
			f.log.Warn("cannot read the events of all runs; the feed tries again", "error", err)
		}
		select {
		case <-f.ctx.Done():
		case <-time.After(max(f.pause, time.Since(start))):
		}
		f.mu.Lock()
		if idle++; f.followers > 0 {
			idle = 0
		}
		if idle > idleRounds || f.ctx.Err() != nil {
			f.running = false
			f.mu.Unlock()
			return
		}
		f.mu.Unlock()
	}
}

// round reads the runs that are due. began is the start of the feed; earlier events are not published.
func (f *allFeed) round(runs map[string]*followedRun, began time.Time) error {
	start := time.Now()
	found, err := f.index.ActiveSince(f.ctx, later(began, start.Add(-2*lag)), maxRuns)
	if err != nil {
		return err
	}
	active := map[string]bool{}
	var due []string
	for _, info := range found {
		id, closed := info.GetExecution().GetWorkflowId(), !runview.IsOpen(info.GetStatus())
		active[id] = true
		known := runs[id]
		if known == nil {
			known = &followedRun{tail: newRunTail(f.events, began), owner: runindex.OwnerOf(info), looked: began}
			runs[id] = known
		}
		if closed && known.closed && known.execution == info.GetExecution().GetRunId() {
			known.looked = start
			continue
		}
		due = append(due, id)
	}
	for id := range runs {
		if !active[id] {
			delete(runs, id)
		}
	}
	due = longestUnseen(due, runs, maxLooks)
	group := errgroup.Group{}
	group.SetLimit(looksAtOnce)
	for _, id := range due {
		group.Go(func() error {
			f.readRun(id, runs[id])
			return nil
		})
	}
	_ = group.Wait() // look logs its own errors
	complete := start
	for _, r := range runs {
		if r.looked.Before(complete) {
			complete = r.looked
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.complete = later(f.complete, complete)
	return f.ctx.Err()
}

// readRun reads the events of a run if its history has grown.
func (f *allFeed) readRun(id string, r *followedRun) {
	ctx, cancel := context.WithTimeout(f.ctx, readTimeout)
	defer cancel()
	start := time.Now()
	desc, err := f.reader.Describe(ctx, id)
	info := desc.GetWorkflowExecutionInfo()
	if err == nil && (info.GetExecution().GetRunId() != r.execution || info.GetHistoryLength() != r.history) {
		var read []*v1.Event
		err = r.tail.read(ctx, f.reader, id, func(e *v1.Event) error {
			read = append(read, e)
			return nil
		})
		f.publish(r.owner, read)
	}
	switch {
	case err == nil:
		r.execution, r.history, r.closed = info.GetExecution().GetRunId(), info.GetHistoryLength(), !runview.IsOpen(info.GetStatus())
		r.looked = start
	case f.ctx.Err() != nil:
	case rpcerror.CodeOf(err) == connect.CodeNotFound:
		r.looked, r.closed = start, true
	default:
		f.log.Debug("cannot read the events of a run; the feed tries again", "run", id, "error", err)
		r.looked = start // an unresponsive run must not hold up complete
	}
}

// publish appends events of a run, and drops the oldest entries beyond the limits.
func (f *allFeed) publish(owner string, read []*v1.Event) {
	if len(read) == 0 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range read {
		data, err := marshalMessage(e)
		if err != nil {
			f.log.Error("cannot encode an event; it is missing from the feed of all runs", "run", e.GetRun(), "id", e.GetId(), "error", err)
			continue
		}
		id := allID{f.name, f.first + int64(len(f.entries)), f.complete}
		entry := &allEntry{event: e, owner: owner, frame: eventstream.Frame(e.GetEvent(), id.text(), data)}
		f.entries = append(f.entries, entry)
		f.bytes += len(entry.frame)
	}
	for len(f.entries) > maxEntries || f.bytes > maxEntryBytes && len(f.entries) > 1 {
		f.bytes -= len(f.entries[0].frame)
		f.entries, f.first = f.entries[1:], f.first+1
	}
	close(f.changed)
	f.changed = make(chan struct{})
}

// head returns the id of the last published event.
func (f *allFeed) head() allID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return allID{f.name, f.first + int64(len(f.entries)) - 1, f.complete}
}

// keeps reports whether the feed still has every event after the given id.
func (f *allFeed) keeps(id allID) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return id.feed == f.name && id.number >= f.first-1 && id.number < f.first+int64(len(f.entries))
}

// after returns the entries after the given number. kept is false if the feed no longer has all of them. changed is closed
// when there are more.
func (f *allFeed) after(number int64) (entries []*allEntry, kept bool, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if number < f.first-1 {
		return nil, false, f.changed
	}
	return f.entries[number+1-f.first:], true, f.changed
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
