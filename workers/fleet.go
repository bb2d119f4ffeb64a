package workers

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sync/singleflight"

	"switchyard/activities/metrics"
	"switchyard/activities/orchestrator"
	"switchyard/activities/placement"
	"switchyard/activities/registry"
	"switchyard/activities/store"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/phrase"
)

const (
	// listInterval is how often visibility is asked for the nodes, per listPage of them.
	listInterval = 3 * time.Second
	listPage     = 1000
	// readInterval is how often the entries of nodes are read.
	readInterval = time.Second
	// eagerInterval replaces readInterval while an expected node has not appeared, or a node has never been read.
	eagerInterval = 20 * time.Millisecond
	// expectFor is how long a node is expected.
	expectFor = 30 * time.Second
	// readers is the number of concurrent reads of entries.
	readers = 16
	// readsPerRound bounds the entries read per round, however large the fleet is.
	readsPerRound = 300
	// callTimeout bounds one call to the server.
	callTimeout = 5 * time.Second
)

// fleet keeps the placement queue's view of the nodes up to date from the registry.
type fleet struct {
	registry  *registry.Registry
	placement *orchestrator.Placement
	logger    *slog.Logger
	wake      chan struct{}
	reads     singleflight.Group // for entry

	mu       sync.Mutex
	store    string               // identity of the leader's store, or "" until it is known
	expected map[string]time.Time // node -> expected until
	seen     map[string]sighting
	order    readOrder
}

// sighting is the last known state of a node.
type sighting struct {
	entry *registry.Entry
	read  time.Time // time of the last read
	// moved is an upper bound for the arrival of its newest heartbeat, by this process's clock.
	moved time.Time
}

// identifyPause is the wait before another attempt to read the identity of a store.
const identifyPause = time.Second

// identify reads the identity of the store that the nodes must share. It retries while the store is unreachable, until
// ctx ends.
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
		f.logger.Warn("cannot determine which nodes share this process's store", "error", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(identifyPause):
		}
	}
}

func newFleet(c client.Client, p *orchestrator.Placement, logger *slog.Logger) *fleet {
	return &fleet{
		registry: registry.New(c), placement: p, logger: logger,
		wake:     make(chan struct{}, 1),
		expected: map[string]time.Time{},
		seen:     map[string]sighting{},
		order:    newReadOrder(),
	}
}

// expect makes the fleet read nodes that visibility may not list yet, each until the given time.
func (f *fleet) expect(nodes map[string]time.Time) {
	f.mu.Lock()
	maps.Copy(f.expected, nodes)
	f.placement.ExpectNodes(len(f.expected) > 0)
	f.mu.Unlock()
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *fleet) run(ctx context.Context) {
	var nextList, nextRound time.Time
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-f.wake:
		}
		now := time.Now()
		if now.After(nextList) {
			if records, err := f.registry.Records(ctx); err != nil {
				f.logger.Debug("the nodes could not be listed", "error", err)
			} else {
				f.list(records)
				nextList = now.Add(listInterval * time.Duration(1+len(records)/listPage))
			}
		}
		if ctx.Err() != nil {
			return
		}
		regular := !now.Before(nextRound)
		if regular {
			nextRound = now.Add(readInterval)
		}
		f.read(ctx, f.due(regular))
		timer.Reset(min(f.refresh(ctx), max(time.Until(nextRound), 0)))
	}
}

// waitReason returns the reason for the state of a node, as tasks that wait for the node show it: with the time until when its next
// worker is awaited, or since when it is offline.
func waitReason(r *historyv1.NodeRecord, state, reason string) string {
	switch {
	case state == v1.NodeRestarting && r.GetRestartingUntil() != nil:
		return "until " + phrase.Clock(r.GetRestartingUntil().AsTime())
	case state == v1.NodeOffline && r.GetStateSince() != nil:
		return strings.TrimSuffix("since "+r.GetStateSince().AsTime().UTC().Format("2006-01-02 15:04 UTC")+": "+reason, ": ")
	}
	return reason
}

// refresh reports the nodes to the placement queue, and returns how soon they must be read again.
func (f *fleet) refresh(ctx context.Context) time.Duration {
	if ctx.Err() != nil {
		return readInterval
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var nodes []placement.Node
	for _, name := range slices.Sorted(maps.Keys(f.seen)) {
		s := f.seen[name]
		if s.entry.Known() != nil {
			state, reason := s.entry.State(f.silence(name), f.store)
			nodes = append(nodes, placement.Node{Snapshot: s.entry.Known(), State: state, Reason: waitReason(s.entry.Record, state, reason)})
		}
	}
	eager := len(f.expected) > 0 || f.order.areNew()
	f.placement.ExpectNodes(eager)
	f.placement.SetNodes(nodes)
	if eager {
		return eagerInterval
	}
	return readInterval
}

// silence returns how old the newest heartbeat of a seen node was when the node was last read, or when that read
// failed. The caller holds mu.
func (f *fleet) silence(name string) time.Duration {
	return f.order.last[name].Sub(f.seen[name].moved)
}

// figures returns the nodes for a metrics scrape.
func (f *fleet) figures() []metrics.FleetNode {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	var nodes []metrics.FleetNode
	for name, s := range f.seen {
		if s.entry.Known() == nil {
			continue
		}
		silence := f.silence(name)
		state, _ := s.entry.State(silence, f.store)
		node := metrics.FleetNode{Name: name, State: state, LastBeat: now.Add(-silence)}
		if state != v1.NodeOffline {
			node.Ledger = ledgerOf(s.entry.Known())
		}
		nodes = append(nodes, node)
	}
	return nodes
}

// list applies the nodes that visibility lists. Visibility lags behind.
func (f *fleet) list(records map[string]*historyv1.NodeRecord) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.order.set(records, f.seen)
}

// due returns at most readsPerRound nodes to read now. Expected nodes are due in every round; nodes that have been read
// before only in a regular one.
func (f *fleet) due(regular bool) []string {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.expected, func(_ string, until time.Time) bool { return now.After(until) })
	return f.order.next(f.expected, regular)
}

// read reads the entries of nodes. A node that cannot be read keeps its last state, which becomes stale.
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
				f.order.forget(name)
			case err != nil:
				f.logger.Debug("a node could not be read", "node", name, "error", err)
				f.order.tried(name, time.Now())
			default:
				f.see(name, e)
			}
			return nil
		})
	}
	_ = group.Wait() // the functions return no error
}

// entry returns the registry's entry of a node, at most readInterval old. Concurrent callers share one read per node.
func (f *fleet) entry(ctx context.Context, name string) (*registry.Entry, error) {
	f.mu.Lock()
	s, known := f.seen[name]
	f.mu.Unlock()
	if known && time.Since(s.read) < readInterval {
		return s.entry, nil
	}
	e, err, _ := f.reads.Do(name, func() (any, error) {
		e, err := f.registry.Entry(context.WithoutCancel(ctx), name)
		if err == nil {
			f.mu.Lock()
			f.see(name, e)
			f.mu.Unlock()
		}
		return e, err
	})
	if err != nil {
		return nil, err
	}
	return e.(*registry.Entry), nil
}

// see stores an entry that was just read. The caller holds mu.
func (f *fleet) see(name string, e *registry.Entry) {
	now := time.Now()
	old, known := f.seen[name]
	s := sighting{entry: e, read: now, moved: now}
	if known && old.entry.Known().GetIncarnation() == e.Known().GetIncarnation() {
		s.moved = old.movedBy(e, now)
	}
	f.seen[name] = s
	f.order.tried(name, now)
	if e.Record.GetState() != v1.NodeOffline && now.Sub(s.moved) > e.StaleAfter()/2 {
		f.order.urgent[name] = true
	}
	if e.Known() != nil && e.Record.GetState() != v1.NodeOffline {
		delete(f.expected, name)
	}
}

// movedBy returns when the newest heartbeat of an entry arrived. A heartbeat after the sighting moves that time forward
// by the interval that the server recorded between the two.
func (s sighting) movedBy(e *registry.Entry, now time.Time) time.Time {
	if s.entry.Known().GetSequence() == e.Known().GetSequence() {
		return s.moved
	}
	if s.entry.BeatAt.IsZero() {
		return now
	}
	moved := s.moved.Add(e.BeatAt.Sub(s.entry.BeatAt))
	switch {
	case moved.Before(s.read):
		return s.read
	case moved.After(now):
		return now
	}
	return moved
}
