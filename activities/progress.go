package activities

import (
	"context"
	"errors"
	"time"

	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
)

// LoadProgress returns what had ended of a batch when its node was lost: a record
// that the last heartbeat names.
func (c *Control) LoadProgress(ctx context.Context, key string) (*v1.ExecuteResponse, error) {
	var res v1.ExecuteResponse
	if err := load(ctx, c.Store, key, &res); err != nil {
		return nil, err
	}
	return &res, nil
}

// lostPatience is how long the record of an attempt may be on its way whose heartbeats have
// stopped: after an outage of the server the nodes come back in the same moment as its timers.
const lostPatience = 8 * time.Second

// FindResult returns what a lost attempt of a task has recorded, if that has completed, as far as
// limit bytes of it may travel; without a state it has recorded nothing of the kind.
func (c *Control) FindResult(ctx context.Context, home string, generation int32, task string, attempt, limit int32) (*v1.ExecuteResponse, error) {
	key := store.ResultKey(home, generation, task, attempt)
	record, err := c.Store.AwaitResult(ctx, key, lostPatience)
	switch {
	case errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrUnreadable):
		return &v1.ExecuteResponse{}, nil
	case err != nil:
		return nil, err
	case record.GetState() != "completed":
		return &v1.ExecuteResponse{}, nil
	}
	return cut(record, key, int(limit)), nil
}
