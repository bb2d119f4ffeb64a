package orchestrator

import (
	"context"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
)

// SaveShared stores an object that many requests of a run carry by reference, such as its context. It returns the key.
// version distinguishes the states of the object.
func (c *Control) SaveShared(ctx context.Context, home string, generation int32, what string, version int64, object *structpb.Struct) (string, error) {
	key := storekey.Shared(home, generation, what, version)
	return key, c.Store.PutMessage(ctx, key, object)
}

// SaveAncestors stores the results of a task's ancestors, which requests of a run carry by reference. It returns the key.
func (c *Control) SaveAncestors(ctx context.Context, home string, all *historyv1.Ancestors) (string, error) {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(all)
	if err != nil {
		return "", err
	}
	key := storekey.Ancestors(home, storekey.Digest(data))
	return key, c.Store.PutMessage(ctx, key, all)
}
