package notifications

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

// ErrUnknown is wrapped by errors about a target that does not exist.
var ErrUnknown = errors.New("no such notification target")

// Targets holds the targets of a deployment. It is safe for concurrent use, and several may share a store.
type Targets struct {
	store *store.Store
	now   func() time.Time
}

// NewTargets returns the targets in a store.
func NewTargets(s *store.Store, now func() time.Time) *Targets { return &Targets{store: s, now: now} }

// Put stores a checked target under a name, and returns it as stored. by is who stores it.
func (t *Targets) Put(ctx context.Context, name string, target *v1.NotificationTarget, by string) (stored *v1.NotificationTarget, replaced bool, err error) {
	_, err = t.Get(ctx, name)
	if replaced = err == nil; err != nil && !errors.Is(err, ErrUnknown) && !store.IsOfOneValue(err) {
		return nil, false, err
	}
	stored = proto.CloneOf(target)
	stored.Name, stored.Type, stored.UpdatedAt, stored.UpdatedBy = name, v1.NotificationTargetType(target), timestamppb.New(t.now()), by
	if err := t.store.PutMessage(ctx, storekey.NotificationTarget(name), &v1.NotificationTargetRecord{Target: stored}); err != nil {
		return nil, false, fmt.Errorf("store notification target %s: %w", name, err)
	}
	return stored, replaced, nil
}

// Get returns the target with a name.
func (t *Targets) Get(ctx context.Context, name string) (*v1.NotificationTarget, error) {
	var record v1.NotificationTargetRecord
	err := t.store.GetMessage(ctx, storekey.NotificationTarget(name), &record)
	if errors.Is(err, store.ErrNotFound) || err == nil && record.GetDeleted() {
		return nil, fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	if err != nil {
		return nil, fmt.Errorf("read notification target %s: %w", name, err)
	}
	return record.GetTarget(), nil
}

// List returns all targets that can be read, ordered by name, and a warning for each of the others.
func (t *Targets) List(ctx context.Context) (all []*v1.NotificationTarget, warnings []string, err error) {
	warnings, err = t.store.ReadEach(ctx, storekey.NotificationsPrefix, func(key string) error {
		var record v1.NotificationTargetRecord
		err := t.store.GetMessage(ctx, key, &record)
		switch {
		case err != nil || record.GetDeleted():
			return err
		case storekey.NotificationTarget(record.GetTarget().GetName()) != key:
			return store.Unreadable(key, "notification target")
		}
		all = append(all, record.GetTarget())
		return nil
	}, func(key string, err error) string {
		return fmt.Sprintf("notification target %s is left out: %v; store it again", storekey.NotificationTargetName(key), err)
	})
	if err != nil {
		return nil, nil, fmt.Errorf("list notification targets: %w", err)
	}
	slices.SortFunc(all, func(a, b *v1.NotificationTarget) int { return cmp.Compare(a.GetName(), b.GetName()) })
	return all, warnings, nil
}

// Delete removes a target and returns it as it was.
func (t *Targets) Delete(ctx context.Context, name string) (*v1.NotificationTarget, error) {
	target, err := t.Get(ctx, name)
	if err != nil {
		return nil, err
	}
	record := &v1.NotificationTargetRecord{Target: &v1.NotificationTarget{Name: name}, Deleted: true}
	if err := t.store.PutMessage(ctx, storekey.NotificationTarget(name), record); err != nil {
		return nil, fmt.Errorf("delete notification target %s: %w", name, err)
	}
	return target, nil
}
