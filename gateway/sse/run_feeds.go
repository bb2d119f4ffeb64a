package sse

import (
	"context"
	"log/slog"
	"sync"

	"switchyard/gateway/runevents"
	"switchyard/gateway/runview"
)

// runFeeds holds one feed per followed run.
type runFeeds struct {
	events  *runevents.Reader
	pollers *runview.Pollers
	log     *slog.Logger
	ctx     context.Context
	cancel  context.CancelFunc
	wg      sync.WaitGroup

	mu      sync.Mutex
	byRun   map[string]*runFeed
	started int // number of feeds that have ever been started
}

func newRunFeeds(events *runevents.Reader, pollers *runview.Pollers, log *slog.Logger) *runFeeds {
	ctx, cancel := context.WithCancel(context.Background())
	return &runFeeds{events: events, pollers: pollers, log: log, ctx: ctx, cancel: cancel, byRun: map[string]*runFeed{}}
}

// follow returns the feed of a run. A new feed begins at position at. The feed reads until every caller of follow has
// called release.
func (fs *runFeeds) follow(id string, at runevents.Position) (f *runFeed, release func()) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	f = fs.byRun[id]
	if f == nil {
		ctx, cancel := context.WithCancel(fs.ctx)
		f = &runFeed{
			id: id, events: fs.events, pollers: fs.pollers, log: fs.log, cancel: cancel,
			start: at, newest: at, starts: map[startKey]*feedEntry{}, change: make(chan struct{}),
		}
		fs.byRun[id] = f
		fs.started++
		if fs.ctx.Err() != nil {
			f.finish(nil, fs.ctx.Err())
			cancel()
		} else {
			fs.wg.Go(func() {
				f.run(ctx)
				cancel()
				fs.forget(f)
			})
		}
	}
	return f, fs.enterLocked(f)
}

// followKnown returns the existing feed of a run if the feed has read past at. Otherwise it returns nil.
func (fs *runFeeds) followKnown(id string, at runevents.Position) (f *runFeed, release func()) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	if f = fs.byRun[id]; f == nil || !f.hasRead(at) {
		return nil, nil
	}
	return f, fs.enterLocked(f)
}

// enterLocked counts another follower of a feed until release is called.
func (fs *runFeeds) enterLocked(f *runFeed) (release func()) {
	f.followers++
	return sync.OnceFunc(func() {
		fs.mu.Lock()
		defer fs.mu.Unlock()
		if f.followers--; f.followers == 0 {
			f.cancel()
			fs.forgetLocked(f)
		}
	})
}

// forget removes a feed, so that the next follower of the run starts a new one.
func (fs *runFeeds) forget(f *runFeed) {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	fs.forgetLocked(f)
}

func (fs *runFeeds) forgetLocked(f *runFeed) {
	if fs.byRun[f.id] == f {
		delete(fs.byRun, f.id)
	}
}

func (fs *runFeeds) countStarted() int {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return fs.started
}

func (fs *runFeeds) countOpen() int {
	fs.mu.Lock()
	defer fs.mu.Unlock()
	return len(fs.byRun)
}

// close stops all feeds and waits for them. Later calls of follow start no feed.
func (fs *runFeeds) close() {
	fs.mu.Lock()
	fs.cancel()
	fs.mu.Unlock()
	fs.wg.Wait()
}
