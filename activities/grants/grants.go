package grants

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
)

const (
	// maxCached bounds the number of cached grants.
	maxCached = 1 << 16
	// putsAtOnce is the number of grants that are stored concurrently.
	putsAtOnce = 16
)

// Grant records that a node was given a task of a chain of a run, or instances of that task. A Grant without Chain and Task
// records that the node was given any task of the run.
type Grant struct{ Node, Run, Chain, Task string }

// Grants gives access to the grants in a store. Grants never change, so they are cached. It is safe for concurrent use.
type Grants struct {
	store *store.Store

	mu    sync.Mutex
	known map[Grant]struct{}
}

// New returns the grants in a store, with an empty cache.
func New(s *store.Store) *Grants { return &Grants{store: s, known: map[Grant]struct{}{}} }

// Put stores grants. It skips grants that are already in the cache.
func (g *Grants) Put(ctx context.Context, all ...Grant) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(putsAtOnce)
	asked := make(map[Grant]struct{}, len(all))
	for _, one := range all {
		if _, again := asked[one]; again || g.isKnown(one) {
			continue
		}
		asked[one] = struct{}{}
		group.Go(func() error {
			if _, err := g.store.PutIfAbsent(ctx, storekey.Grant(one.Run, one.Chain, one.Node, one.Task), []byte("granted")); err != nil {
				return fmt.Errorf("grant node %s task %s of run %s: %w", one.Node, one.Task, one.Run, err)
			}
			g.remember(one)
			return nil
		})
	}
	return group.Wait()
}

// Has reports whether a node was given a task.
func (g *Grants) Has(ctx context.Context, one Grant) (bool, error) {
	if g.isKnown(one) {
		return true, nil
	}
	_, err := g.store.Get(ctx, storekey.Grant(one.Run, one.Chain, one.Node, one.Task))
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	g.remember(one)
	return true, nil
}

// HasRun reports whether a node was given any task of a run.
func (g *Grants) HasRun(ctx context.Context, node, run string) (bool, error) {
	of := Grant{Node: node, Run: run}
	if g.isKnown(of) {
		return true, nil
	}
	for _, err := range g.store.Keys(ctx, storekey.GrantsPrefix(run, node)) {
		if err != nil {
			return false, err
		}
		g.remember(of)
		return true, nil
	}
	return false, nil
}

func (g *Grants) isKnown(one Grant) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, ok := g.known[one]
	return ok
}

func (g *Grants) remember(one Grant) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.known) >= maxCached {
		clear(g.known) // the store still has them
	}
	g.known[one] = struct{}{}
}
