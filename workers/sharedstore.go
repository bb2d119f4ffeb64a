package workers

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"switchyard/activities/registry"
	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// storeTimeout bounds one look at the identity of a store.
	storeTimeout = 3 * time.Second
	// storePause is the wait before a node looks again.
	storePause = 2 * time.Second
	// ownerSilence is how long an owner may be silent that is alive: its heartbeat time-out and a little more.
	ownerSilence = 6 * time.Second
	// ownerPoll is the wait between two looks at the owner.
	ownerPoll = 100 * time.Millisecond
)

// sharedStore returns the identity of the process's store, or "" while that is away. It
// is an error that the fleet has another store: what the nodes of one keep, the other
// would not find. The fleet's store is that of the owner of the placement queue, while
// it beats, and for a process with a private store also that of the owner before.
func (c ControlConfig) sharedStore(ctx context.Context) (string, error) {
	id, err := identityOf(ctx, c.Store)
	if err != nil {
		c.Logger.Warn("whether the fleet has the same store is not known", "error", err)
		return "", nil
	}
	reg := registry.New(c.Client)
	last, _, err := reg.LastOwner(ctx)
	if err == nil && c.PrivateStore && last.GetStore() != "" && !last.GetPrivateStore() {
		return "", c.otherStore(last)
	}
	var first time.Time
	for until := time.Now().Add(ownerSilence); time.Now().Before(until); {
		beat, at, err := reg.Owner(ctx)
		if err != nil || beat.GetStore() == "" || beat.GetStore() == id {
			return id, nil // an owner that cannot be read shows up later
		}
		if beat.GetPrivateStore() && !c.PrivateStore {
			c.Logger.Warn("the placement queue is owned by a process with a private store; this one takes over when it ends", "owner", beat.GetIdentity())
			return id, nil
		}
		if first.IsZero() {
			first = at
		}
		if at.After(first) {
			return "", c.otherStore(beat)
		}
		select {
		case <-ctx.Done():
			return "", ctx.Err()
		case <-time.After(ownerPoll):
		}
	}
	return id, nil
}

func (c ControlConfig) otherStore(owner *v1.OwnerBeat) error {
	return fmt.Errorf("the fleet on this Temporal has another store than %s: its placement queue is owned by %s; use its gateway (--gateway URL), or start with the --store of that one",
		c.Store.Location(), owner.GetIdentity())
}

func identityOf(ctx context.Context, s *store.Store) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return s.Identity(ctx)
}

// nodeStore is what a node knows of its store. It is safe for concurrent use.
type nodeStore struct {
	store   *store.Store
	log     *slog.Logger
	id      atomic.Pointer[string] // nil: it could not be read yet
	problem atomic.Pointer[string] // nil: there is none
}

// read reads the identity of the store, and says at its first failure why the node gets no tasks.
func (s *nodeStore) read(ctx context.Context) {
	id, err := identityOf(ctx, s.store)
	if err == nil {
		s.id.Store(&id)
		if s.problem.Swap(nil) != nil {
			s.log.Info("the node's store can be used", "store", s.store.Location())
		}
		return
	}
	problem := fmt.Sprintf("its store %s cannot be used: %s", s.store.Location(), err)
	if s.problem.Swap(&problem) == nil {
		s.log.Warn("the node gets no tasks until its store can be used; check --gateway or --store", "store", s.store.Location(), "error", err)
	}
}

// compare says that the node gets no tasks because its store is not the fleet's. It
// reports whether there is nothing more to find out.
func (s *nodeStore) compare(ctx context.Context, reg *registry.Registry) bool {
	id := s.id.Load()
	if id == nil {
		s.read(ctx)
		return false
	}
	beat, _, err := reg.Owner(ctx)
	if err != nil || beat.GetStore() == "" {
		return false
	}
	if beat.GetStore() != *id {
		s.log.Warn("the node gets no tasks: "+registry.OtherStore, "store", s.store.Location(), "owner", beat.GetIdentity())
	}
	return true
}

// watch looks until ctx ends or everything is known.
func (s *nodeStore) watch(ctx context.Context, reg *registry.Registry) {
	for !s.compare(ctx, reg) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(storePause):
		}
	}
}
