package orchestrator

import (
	"context"

	v1 "switchyard/proto/switchyard/v1"
)

// LoadProgress returns the members of a batch that had ended when its node was lost, from the record that the last
// heartbeat names.
func (c *Control) LoadProgress(ctx context.Context, key string) (*v1.ExecuteResponse, error) {
	var res v1.ExecuteResponse
	if err := load(ctx, c.Store, key, &res); err != nil {
		return nil, err
	}
	return &res, nil
}
