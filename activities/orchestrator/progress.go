package orchestrator

import (
	"context"

	historyv1 "switchyard/proto/switchyard/history/v1"
)

// LoadProgress returns the members of a batch that had ended when its node was lost, from the record that the last
// heartbeat names.
func (c *Control) LoadProgress(ctx context.Context, key string) (*historyv1.ExecuteResponse, error) {
	var res historyv1.ExecuteResponse
	if err := load(ctx, c.Store, key, &res); err != nil {
		return nil, err
	}
	return &res, nil
}
