package owners

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

// ErrInvalid is in the chain of errors about terms that contradict those of another owner.
var ErrInvalid = errors.New("invalid terms")

// Owners holds the terms of owners and what they use. It is safe for concurrent use, and several may share a store.
type Owners struct {
	store *store.Store
	now   func() time.Time

	mu     sync.Mutex
	recent []*v1.Owner
	readAt time.Time // zero if recent is outdated
}

// recentFor is how long Recent returns the same owners.
const recentFor = 5 * time.Second

// Recent returns what List returned at most 5 s ago. The caller must not change the owners.
func (o *Owners) Recent(ctx context.Context) ([]*v1.Owner, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now := o.now(); now.Sub(o.readAt) > recentFor {
		all, _, err := o.List(ctx)
		if err != nil {
			return nil, err
		}
		o.recent, o.readAt = all, now
	}
	return o.recent, nil
}

// New returns the owners in a store.
func New(s *store.Store, now func() time.Time) *Owners { return &Owners{store: s, now: now} }

// Set sets the share or the quota of an owner, or both, and returns the owner. A nil share or quota stays as it is. by is who sets
// them.
func (o *Owners) Set(ctx context.Context, name string, share *v1.Share, quota *v1.Quota, by string) (*v1.Owner, error) {
	all, _, err := o.List(ctx)
	if err != nil {
		return nil, err
	}
	owner := &v1.Owner{Name: name}
	for _, other := range all {
		if other.GetName() == name {
			owner = other
			continue
		}
		for _, member := range share.GetMembers() {
			if slices.Contains(other.GetShare().GetMembers(), member) {
				return nil, fmt.Errorf("%w: %s is a member of %s; an owner can be in one group only", ErrInvalid, member, other.GetName())
			}
			if member == other.GetName() && len(other.GetShare().GetMembers()) > 0 {
				return nil, fmt.Errorf("%w: %s is a group; only owners can be members", ErrInvalid, member)
			}
		}
		if len(share.GetMembers()) > 0 && slices.Contains(other.GetShare().GetMembers(), name) {
			return nil, fmt.Errorf("%w: %s is a member of %s, so it cannot be a group", ErrInvalid, name, other.GetName())
		}
	}
	if slices.Contains(share.GetMembers(), name) {
		return nil, fmt.Errorf("%w: a group needs a name that none of its members has", ErrInvalid)
	}
	if share != nil {
		owner.Share = proto.CloneOf(share)
		slices.Sort(owner.Share.GetMembers())
	}
	if quota != nil {
		owner.Quota = quota
	}
	if proto.Equal(owner.GetShare(), &v1.Share{Weight: 1}) {
		owner.Share = nil
	}
	if proto.Equal(owner.GetQuota(), &v1.Quota{}) {
		owner.Quota = nil
	}
	owner.UpdatedAt, owner.UpdatedBy = timestamppb.New(o.now()), by
	if err := o.store.PutMessage(ctx, storekey.Owner(name), owner); err != nil {
		return nil, fmt.Errorf("store the terms of owner %s: %w", name, err)
	}
	o.mu.Lock()
	o.readAt = time.Time{}
	o.mu.Unlock()
	return owner, nil
}

// List returns all owners that have a share or a quota, by name, and a warning for each that cannot be read.
func (o *Owners) List(ctx context.Context) (all []*v1.Owner, warnings []string, err error) {
	warnings, err = o.store.ReadEach(ctx, storekey.OwnersPrefix, func(key string) error {
		var owner v1.Owner
		err := o.store.GetMessage(ctx, key, &owner)
		switch {
		case err != nil || owner.GetShare() == nil && owner.GetQuota() == nil:
			return err
		case storekey.Owner(owner.GetName()) != key:
			return store.Unreadable(key, "owner")
		}
		all = append(all, &owner)
		return nil
	}, func(key string, err error) string {
		return fmt.Sprintf("the terms of owner %s are left out: %v; set them again", storekey.OwnerName(key), err)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list the terms of owners: %w", err)
	}
	slices.SortFunc(all, func(a, b *v1.Owner) int { return strings.Compare(a.GetName(), b.GetName()) })
	return all, warnings, nil
}

// PutUse stores what owners use at this time.
func (o *Owners) PutUse(ctx context.Context, uses map[string]*v1.OwnerUse) error {
	if err := o.store.PutMessage(ctx, storekey.FleetUse, &v1.FleetUse{At: timestamppb.New(o.now()), Owners: uses}); err != nil {
		return fmt.Errorf("store what owners use: %w", err)
	}
	return nil
}

// Use returns what owners used when it was last stored. It is empty if it never was.
func (o *Owners) Use(ctx context.Context) (*v1.FleetUse, error) {
	use := &v1.FleetUse{}
	if err := o.store.GetMessage(ctx, storekey.FleetUse, use); err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, fmt.Errorf("read what owners use: %w", err)
	}
	return use, nil
}
