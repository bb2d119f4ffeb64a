package gateway

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// pollers holds one poller for each run that somebody watches.
type pollers struct {
	reader   *reader
	interval time.Duration
	log      *slog.Logger
	ctx      context.Context
	cancel   context.CancelFunc
	wg       sync.WaitGroup

	mu      sync.Mutex
	byRun   map[string]*poller
	started int // pollers that have ever been started
}

func newPollers(r *reader, interval time.Duration, log *slog.Logger) *pollers {
	ctx, cancel := context.WithCancel(context.Background())
	return &pollers{reader: r, interval: interval, log: log, ctx: ctx, cancel: cancel, byRun: map[string]*poller{}}
}

// watch returns the poller of a run, which runs until everyone who called watch
// has called release.
func (ps *pollers) watch(id string) (p *poller, release func()) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p = ps.byRun[id]
	if p == nil {
		ctx, cancel := context.WithCancel(ps.ctx)
		p = &poller{
			id: id, reader: ps.reader, interval: ps.interval, log: ps.log,
			cancel: cancel, view: newView(id), changed: make(chan struct{}),
		}
		if ps.ctx.Err() != nil {
			cancel()
			p.finish(ps.ctx.Err())
			return p, func() {}
		}
		ps.byRun[id] = p
		ps.started++
		ps.wg.Go(func() {
			p.run(ctx)
			cancel()
			ps.forget(p)
		})
	}
	p.watchers++
	return p, sync.OnceFunc(func() {
		ps.mu.Lock()
		defer ps.mu.Unlock()
		if p.watchers--; p.watchers == 0 {
			p.cancel()
			ps.forgetLocked(p)
		}
	})
}

// forget makes the next watcher of a run start a poller of its own.
func (ps *pollers) forget(p *poller) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.forgetLocked(p)
}

func (ps *pollers) forgetLocked(p *poller) {
	if ps.byRun[p.id] == p {
		delete(ps.byRun, p.id)
	}
}

// close ends all pollers and waits for them; watch starts no more.
func (ps *pollers) close() {
	ps.mu.Lock()
	ps.cancel()
	ps.mu.Unlock()
	ps.wg.Wait()
}
