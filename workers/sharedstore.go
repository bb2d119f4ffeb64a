package workers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"switchyard/activities/gatewayclient"
	"switchyard/activities/registry"
	"switchyard/activities/store"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

const (
	// storeTimeout bounds one read of a store's identity.
	storeTimeout = 3 * time.Second
	// nodeStoreTimeout bounds one read by a node, which may try several gateways. storeInterval is the longest interval between
	// two reads by a node, and storePause the interval while they fail. A node is stale at most 12 s after the loss of its store.
	nodeStoreTimeout = 7 * time.Second
	storeInterval    = 5 * time.Second
	storePause       = time.Second
	// leaderSilence is how long a live leader may be silent: its heartbeat time-out and a little more.
	leaderSilence = 6 * time.Second
	// leaderReadInterval is the interval between two reads of the leader.
	leaderReadInterval = 100 * time.Millisecond
)

// sharedStore returns the identity of the process's store, or "" if the store is unreachable. It fails if the store
// belongs to another cluster or has a newer data level, and if the fleet has another store, because nodes with different stores would not find
// each other's values. The fleet's store is the store
// of the leader while that heartbeats. For a process with a private store, the store of the
// previous leader counts too.
func (c ControlConfig) sharedStore(ctx context.Context) (string, error) {
	id, err := identityOf(ctx, c.Store)
	if _, isNewer := errors.AsType[*historyv1.NewerDataError](err); isNewer || errors.Is(err, store.ErrForeign) {
		return "", err
	}
	if err != nil {
		c.Logger.Warn("cannot verify that the fleet shares this store", "error", err)
		return "", nil
	}
	reg := registry.New(c.Client)
	last, _, err := reg.LastLeader(ctx)
	if err == nil && c.PrivateStore && last.GetStore() != "" && !last.GetPrivateStore() {
		return "", OtherStoreError(c.Store.Location(), last)
	}
	var first time.Time
	for until := time.Now().Add(leaderSilence); time.Now().Before(until); {
		beat, at, err := reg.Leader(ctx)
		if err != nil || beat.GetStore() == "" || beat.GetStore() == id {
			return id, nil // a leader that cannot be read is checked later
		}
		if beat.GetPrivateStore() && !c.PrivateStore {
			c.Logger.Warn("the placement queue is owned by a process with a private store; this one takes over when it ends", "leader", beat.GetIdentity())
			return id, nil
		}
		if first.IsZero() {
			first = at
		}
		if at.After(first) {
			return "", OtherStoreError(c.Store.Location(), beat)
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(leaderReadInterval):
		}
	}
	return id, nil
}

// OtherStoreError returns the error of a process whose store, at a location, is not the one of the fleet, which a leader uses.
func OtherStoreError(location string, leader *historyv1.LeaderHeartbeat) error {
	return fmt.Errorf("the fleet on this Temporal has another store than %s: its placement queue is owned by %s; use its gateway (--gateway URL), or start with the same --store",
		location, leader.GetIdentity())
}

func identityOf(ctx context.Context, s *store.Store) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return s.Identity(ctx)
}

// nodeStore is a node's view of its store. It is safe for concurrent use.
type nodeStore struct {
	store    *store.Store
	gateways *gatewayclient.Conn // nil if the node has none
	log      *slog.Logger
	changed  func()                 // called when problem has changed
	id       atomic.Pointer[string] // nil until it has been read
	problem  atomic.Pointer[string] // nil if the store can be used
	// isCompared is set when the store has been compared with that of the fleet.
	isCompared bool
}

// read reads the identity of the store. It returns why the store cannot be used, or nil.
func (s *nodeStore) read(ctx context.Context) (problem *string) {
	ctx, cancel := context.WithTimeout(ctx, nodeStoreTimeout)
	defer cancel()
	id, err := s.store.Identify(ctx)
	if err == nil && s.id.Load() == nil {
		err = s.store.CheckLevel(ctx)
	}
	if err != nil {
		return new(fmt.Sprintf("its store %s cannot be used: %s", s.store.Location(), err))
	}
	s.id.Store(&id)
	return nil
}

// update reads the identity of the store, and logs when the node begins or ceases to get no tasks.
func (s *nodeStore) update(ctx context.Context) {
	problem := s.read(ctx)
	if ctx.Err() != nil {
		return
	}
	switch before := s.problem.Swap(problem); {
	case before == nil && problem != nil:
		s.log.Warn("the node gets no tasks until its store can be used; check --gateway or --store", "problem", *problem)
	case before != nil && problem == nil:
		s.log.Info("the node's store can be used", "store", s.store.Location())
	default:
		return
	}
	s.changed()
}

// compare compares the store with that of the fleet, once both are known. From then on only gateways with the store of the
// fleet are used.
func (s *nodeStore) compare(ctx context.Context, reg *registry.Registry) {
	id := s.id.Load()
	if s.isCompared || id == nil {
		return
	}
	beat, _, err := reg.Leader(ctx)
	if err != nil || beat.GetStore() == "" {
		return
	}
	s.isCompared = true
	if s.gateways != nil && !beat.GetPrivateStore() {
		s.gateways.Expect(beat.GetStore(), "the fleet")
	}
	if beat.GetStore() != *id {
		s.log.Warn("the node gets no tasks: "+registry.OtherStore, "store", s.store.Location(), "leader", beat.GetIdentity())
	}
}

// watch reads the store until ctx ends.
func (s *nodeStore) watch(ctx context.Context, reg *registry.Registry) {
	for {
		s.compare(ctx, reg)
		pause := storeInterval/2 + rand.N(storeInterval/2)
		if s.problem.Load() != nil || s.id.Load() == nil {
			pause = storePause
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		s.update(ctx)
	}
}
