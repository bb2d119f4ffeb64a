package activities

import (
	"context"

	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/store"
)

// SaveShared stores an object that many requests of a run carry by reference, such
// as its context, and returns its key. Version tells one state of it from another.
func (c *Control) SaveShared(ctx context.Context, run string, generation int32, what string, version int64, object *structpb.Struct) (string, error) {
	key := store.SharedKey(run, generation, what, version)
	return key, c.Store.PutMessage(ctx, key, object)
}
