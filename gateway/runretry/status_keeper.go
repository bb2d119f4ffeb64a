package runretry

import (
	"context"
	"errors"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	"switchyard/gateway/runview"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
)

// statusKeeper stores the statuses of runs that were closed from outside.
type statusKeeper struct {
	reader *runview.Reader
	store  *store.Store
}

// ensureStored returns the status of a generation. If the generation was closed from outside and could not store its status
// and last events, ensureStored stores them.
func (k statusKeeper) ensureStored(ctx context.Context, desc *runview.Description, chain string, generation int32) (*historyv1.StatusResponse, error) {
	id := desc.GetWorkflowExecutionInfo().GetExecution().GetWorkflowId()
	home, stored := names.Home(id, chain), &historyv1.StatusResponse{}
	put := k.putOnce
	err := k.store.GetMessage(ctx, storekey.Status(home, generation), stored)
	switch {
	case err == nil && stored.GetRun().GetCompletedAt() == nil: // a forced end has kept how the run was before
		put = k.store.PutMessage
	case err == nil || !errors.Is(err, store.ErrNotFound):
		return stored, err
	}
	if events, part, err := k.reader.UnstoredEvents(ctx, id, 0); err == nil {
		if err := k.putOnce(ctx, storekey.Events(home, generation, part), &historyv1.EventSlice{Events: events}); err != nil {
			return nil, err
		}
	}
	status, err := k.reader.FinalStatus(ctx, desc)
	if err != nil {
		return nil, err
	}
	return status, put(ctx, storekey.Status(home, generation), status)
}

// putOnce stores a message unless the key has one. For the keys of fan-out parts the store has no atomic put-if-absent;
// concurrent calls for them store the same message.
func (k statusKeeper) putOnce(ctx context.Context, key string, m proto.Message) error {
	if storekey.Check(key) == nil {
		_, err := k.store.PutMessageIfAbsent(ctx, key, m)
		return err
	}
	if _, err := k.store.Get(ctx, key); !errors.Is(err, store.ErrNotFound) {
		return err
	}
	return k.store.PutMessage(ctx, key, m)
}
