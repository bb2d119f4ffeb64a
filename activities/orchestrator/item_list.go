package orchestrator

import (
	"context"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/results"
	"switchyard/activities/store/storekey"
	v1 "switchyard/proto/switchyard/v1"
)

// keepList returns a list as it may travel: here when it is small, else by its key
// in the store; or there however small it is. Keeping it again gives the same.
func (c *Control) keepList(ctx context.Context, home string, list *structpb.ListValue, stored bool) (*v1.Items, error) {
	if !stored && proto.Size(list) <= results.MaxInline {
		return &v1.Items{List: list}, nil
	}
	// Maps in a fixed order, so that an equal list has an equal key.
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(&v1.ItemList{Items: list.GetValues()})
	if err != nil {
		return nil, err
	}
	key := storekey.List(home, storekey.Digest(value))
	if err := c.Store.Put(ctx, key, value); err != nil {
		return nil, storeError{err}
	}
	return &v1.Items{Key: key}, nil
}
