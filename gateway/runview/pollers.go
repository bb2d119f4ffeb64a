package runview

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

// Pollers holds one poller per watched run.
type Pollers struct {
	reader   *Reader
	interval time.Duration
	log      *slog.Logger
	ctx      context.Context
	cancel   context.CancelFunc
	wg       sync.WaitGroup

	mu      sync.Mutex
	byRun   map[string]*Poller
	started int // number of pollers that have ever been started
}

// NewPollers returns pollers that poll their runs at most once per interval. The caller must Close them.
func NewPollers(r *Reader, interval time.Duration, log *slog.Logger) *Pollers {
	ctx, cancel := context.WithCancel(context.Background())
	return &Pollers{reader: r, interval: interval, log: log, ctx: ctx, cancel: cancel, byRun: map[string]*Poller{}}
}

// Watch returns the poller of a run, which polls until every caller of Watch has called release.
func (ps *Pollers) Watch(id string) (p *Poller, release func()) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p = ps.byRun[id]
	if p == nil {
		ctx, cancel := context.WithCancel(ps.ctx)
		p = &Poller{
			id: id, reader: ps.reader, interval: ps.interval, log: ps.log,
			cancel: cancel, view: NewView(id), changed: make(chan struct{}),
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

// forget removes a poller, so that the next watcher of the run starts a new one.
func (ps *Pollers) forget(p *Poller) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.forgetLocked(p)
}

func (ps *Pollers) forgetLocked(p *Poller) {
	if ps.byRun[p.id] == p {
		delete(ps.byRun, p.id)
	}
}

// CountOpen returns the number of watched runs.
func (ps *Pollers) CountOpen() int {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return len(ps.byRun)
}

// CountStarted returns the number of pollers that have ever been started.
func (ps *Pollers) CountStarted() int {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.started
}

// Close stops all pollers and waits for them. Later calls of Watch start no poller.
func (ps *Pollers) Close() {
	ps.mu.Lock()
	ps.cancel()
	ps.mu.Unlock()
	ps.wg.Wait()
}
