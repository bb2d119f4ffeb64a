package orchestrator

import (
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/owners"
	"switchyard/activities/placement"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// termsInterval is the time between two reads of the terms of owners.
	termsInterval = 5 * time.Second
	// useInterval is the time between two writes of what owners use. A queue that takes over has forgotten no more than that.
	useInterval = 10 * time.Second
)

// KeepOwners applies the terms of owners in the store to the placement queue, and writes what the owners use to the store. Both
// are best effort. It returns when ctx ends.
func (p *Placement) KeepOwners(ctx context.Context, all *owners.Owners) {
	var applied []*v1.Owner
	var written *v1.FleetUse
	p.restoreUse(ctx, all)
	tick := time.NewTicker(termsInterval)
	defer tick.Stop()
	for next := time.Now().Add(useInterval); ; {
		applied = p.applyTerms(ctx, all, applied)
		if time.Now().After(next) {
			next = time.Now().Add(useInterval)
			written = p.writeUse(ctx, all, written)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// restoreUse makes the queue start with what owners have used lately.
func (p *Placement) restoreUse(ctx context.Context, all *owners.Owners) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	use, err := all.Use(ctx)
	if err != nil {
		p.logger.Warn("the placement queue starts without what owners have used lately", "error", err)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.RestoreUsage(use.GetOwners(), use.GetAt().AsTime())
}

// applyTerms applies the terms of owners to the queue if they differ from those applied before, and returns those that apply.
func (p *Placement) applyTerms(ctx context.Context, all *owners.Owners, applied []*v1.Owner) []*v1.Owner {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	list, _, err := all.List(ctx)
	if err != nil {
		p.logger.Warn("the terms of owners could not be read", "error", err)
		return applied
	}
	if proto.Equal(&v1.ListOwnersResponse{Items: list}, &v1.ListOwnersResponse{Items: applied}) {
		return applied
	}
	terms := map[string]placement.Terms{}
	for _, owner := range list {
		share, quota := owner.GetShare(), owner.GetQuota()
		terms[owner.GetName()] = placement.Terms{
			Weight: share.GetWeight(), Members: share.GetMembers(),
			MaxCores: quota.GetCores(), MaxGPUs: quota.GetGpus(), MaxTasks: int(quota.GetTasks()),
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue.SetTerms(terms)
	p.pass()
	return list
}

// writeUse writes what owners use to the store, unless nothing is used and nothing was written before, and returns what was
// written last.
func (p *Placement) writeUse(ctx context.Context, all *owners.Owners, written *v1.FleetUse) *v1.FleetUse {
	p.mu.Lock()
	use := &v1.FleetUse{Owners: p.queue.Usage()}
	p.mu.Unlock()
	if !p.valid() || len(use.GetOwners()) == 0 && len(written.GetOwners()) == 0 {
		return written
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := all.PutUse(ctx, use.GetOwners()); err != nil {
		p.logger.Warn("what owners use could not be written", "error", err)
		return written
	}
	return use
}
