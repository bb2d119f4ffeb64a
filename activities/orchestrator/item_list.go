package orchestrator

import (
	"context"

	"google.golang.org/protobuf/proto"
	"switchyard/activities/results"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

// keepList returns a list as it may travel: here when it is small, else by its key
// in the store; or there however small it is. Keeping it again gives the same.
func (c *Control) keepList(ctx context.Context, home string, list *v1.ItemList, stored bool) (*v1.Items, error) {
	if !stored && proto.Size(list) <= results.MaxInline {
		items := &v1.Items{States: list.GetStates()}
		if list.GetError() == "" {
			items.List = results.ListOf(list)
		}
		return items, nil
	}
	// Maps in a fixed order, so that an equal list has an equal key.
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(list)
	if err != nil {
		return nil, err
	}
	key := storekey.List(home, storekey.Digest(value))
	if err := c.Store.Put(ctx, key, value); err != nil {
		return nil, storeError{err}
	}
	return &v1.Items{Key: key}, nil
}
