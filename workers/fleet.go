package workers

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"

	"switchyard/activities"
	"switchyard/activities/metrics"
	"switchyard/activities/placement"
	"switchyard/activities/registry"
	"switchyard/activities/store"
	"switchyard/workflows/names"
)

const (
	// listInterval is how often visibility is asked which nodes there are.
	listInterval = 3 * time.Second
	// readInterval is how often the nodes' entries are read.
	readInterval = time.Second
	// eagerInterval is the same while a node is expected that has not shown up.
	eagerInterval = 20 * time.Millisecond
	// expectFor is how long a node is expected.
	expectFor = 30 * time.Second
	// readers is the number of entries that are read at once.
	readers = 16
	// allBelow is the number of nodes up to which all are read each time. Of more, a
	// share is, those first that have waited longest: each at least every sharesOf reads.
	allBelow = 300
	sharesOf = 3
	// callTimeout bounds one call to the server.
	callTimeout = 5 * time.Second
)

// fleet keeps the placement queue's picture of the nodes up to date, from the
// registry.
type fleet struct {
	registry  *registry.Registry
	placement *activities.Placement
	logger    *slog.Logger
	poke      chan struct{}

	mu       sync.Mutex
	store    string               // identity of the owner's store; empty: it is not known yet
	expected map[string]time.Time // node -> until when
	seen     map[string]sighting
}

// sighting is what is known of a node.
type sighting struct {
	entry *registry.Entry
	read  time.Time // when it was read last
	moved time.Time // when this process first saw its newest heartbeat
}

// identifyPause is the wait before a store is asked again for its identity.
const identifyPause = time.Second

// identify finds out which store the nodes must share, and tries again while the store
// is away, until ctx ends.
func (f *fleet) identify(ctx context.Context, s *store.Store) {
	for {
		callCtx, cancel := context.WithTimeout(ctx, callTimeout)
		id, err := s.Identity(callCtx)
		cancel()
		if err == nil {
			f.mu.Lock()
			f.store = id
			f.mu.Unlock()
			return
		}
		f.logger.Warn("which nodes share this process's store is not known", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(identifyPause):
		}
	}
}

func newFleet(c client.Client, p *activities.Placement, logger *slog.Logger) *fleet {
	return &fleet{
		registry: registry.New(c), placement: p, logger: logger,
		poke:     make(chan struct{}, 1),
		expected: map[string]time.Time{},
		seen:     map[string]sighting{},
	}
}

// expect has nodes looked for, each until a time, that visibility may not list yet.
func (f *fleet) expect(nodes map[string]time.Time) {
	f.mu.Lock()
	maps.Copy(f.expected, nodes)
	f.placement.ExpectNodes(len(f.expected) > 0)
	f.mu.Unlock()
	select {
	case f.poke <- struct{}{}:
	default:
	}
}

func (f *fleet) run(ctx context.Context) {
	var listed []string
	var nextList time.Time
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-f.poke:
		}
		if now := time.Now(); now.After(nextList) {
			if nodes, err := f.registry.Names(ctx); err != nil {
				f.logger.Debug("the nodes could not be listed", "error", err)
			} else {
				listed, nextList = nodes, now.Add(listInterval)
			}
		}
		if ctx.Err() != nil {
			return
		}
		timer.Reset(f.refresh(ctx, listed))
	}
}

// refresh reads entries, tells the placement queue, and returns when to do so again.
func (f *fleet) refresh(ctx context.Context, listed []string) time.Duration {
	f.read(ctx, f.due(listed))
	if ctx.Err() != nil {
		return readInterval
	}
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	var nodes []placement.Node
	for _, name := range slices.Sorted(maps.Keys(f.seen)) {
		s := f.seen[name]
		if s.entry.Known() != nil {
			state, reason := s.entry.State(now.Sub(s.moved), f.store)
			nodes = append(nodes, placement.Node{Snapshot: s.entry.Known(), State: state, Reason: reason})
		}
	}
	f.placement.ExpectNodes(len(f.expected) > 0)
	f.placement.SetNodes(nodes)
	if len(f.expected) > 0 {
		return eagerInterval
	}
	return readInterval
}

// figures are what a scrape shows of the nodes.
func (f *fleet) figures() []metrics.FleetNode {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	var nodes []metrics.FleetNode
	for name, s := range f.seen {
		if s.entry.Known() == nil {
			continue
		}
		state, _ := s.entry.State(now.Sub(s.moved), f.store)
		nodes = append(nodes, metrics.FleetNode{Name: name, State: state, LastBeat: s.moved})
	}
	return nodes
}

// due are the nodes to read now: those that visibility lists, which is behind,
// those that are known, and those that are expected.
func (f *fleet) due(listed []string) []string {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	wanted := map[string]bool{}
	for _, name := range listed {
		wanted[name] = true
	}
	for name := range f.seen {
		wanted[name] = true
	}
	for name, until := range f.expected {
		if now.After(until) {
			delete(f.expected, name)
			continue
		}
		wanted[name] = true
	}
	nodes := slices.Collect(maps.Keys(wanted))
	if len(nodes) <= allBelow {
		return nodes
	}
	slices.SortFunc(nodes, func(a, b string) int {
		return cmp.Or(f.seen[a].read.Compare(f.seen[b].read), cmp.Compare(a, b))
	})
	return nodes[:max(allBelow, (len(nodes)+sharesOf-1)/sharesOf)]
}

// read reads the entries of nodes. One that cannot be read stays as it was, and
// becomes stale if that lasts.
func (f *fleet) read(ctx context.Context, nodes []string) {
	var group errgroup.Group
	group.SetLimit(readers)
	for _, name := range nodes {
		group.Go(func() error {
			e, err := f.registry.Entry(ctx, name)
			f.mu.Lock()
			defer f.mu.Unlock()
			switch {
			case errors.Is(err, registry.ErrUnknown):
				delete(f.seen, name)
			case err != nil:
				f.logger.Debug("a node could not be read", "node", name, "error", err)
			default:
				f.see(name, e)
			}
			return nil
		})
	}
	_ = group.Wait() // the functions return no error
}

// see takes an entry that was just read. mu is held.
func (f *fleet) see(name string, e *registry.Entry) {
	now := time.Now()
	old, known := f.seen[name]
	s := sighting{entry: e, read: now, moved: now}
	if known && old.entry.Known().GetIncarnation() == e.Known().GetIncarnation() && old.entry.Known().GetSequence() == e.Known().GetSequence() {
		s.moved = old.moved
	}
	f.seen[name] = s
	if e.Known() != nil && e.Record.GetState() != names.NodeOffline {
		delete(f.expected, name)
	}
}
