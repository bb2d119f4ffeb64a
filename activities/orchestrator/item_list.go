package orchestrator

import (
	"context"

	"google.golang.org/protobuf/proto"
	"switchyard/activities/results"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// keepList returns a list that can travel: inline if it is small and stored is false, else by its key in the store. It is
// idempotent.
func (c *Control) keepList(ctx context.Context, home string, list *historyv1.ItemList, stored bool) (*historyv1.Items, error) {
	if !stored && proto.Size(list) <= results.MaxInline {
		items := &historyv1.Items{States: list.GetStates(), Artifacts: list.GetArtifacts()}
		if list.GetError() == "" {
			items.List = results.ListOf(list)
		}
		return items, nil
	}
	// Encode maps in a fixed order, so that equal lists have equal keys.
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(list)
	if err != nil {
		return nil, err
	}
	key := storekey.List(home, storekey.Digest(value))
	if err := c.Store.Put(ctx, key, value); err != nil {
		return nil, storeError{err}
	}
	return &historyv1.Items{Key: key}, nil
}
