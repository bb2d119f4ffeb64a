package taskrunner

import (
	"context"
	"errors"

	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	"switchyard/workflows/names"
)

// maxInlineCheckpoint is the largest checkpoint, in bytes, that travels in payloads.
const maxInlineCheckpoint = 4 << 10

// saveCheckpoint returns a checkpoint that can travel: inline if it is small, else stored.
func (r records) saveCheckpoint(ctx context.Context, req *historyv1.ExecuteRequest, m *member, data []byte) (*historyv1.Checkpoint, error) {
	if len(data) <= maxInlineCheckpoint {
		return &historyv1.Checkpoint{Data: data}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	key := storekey.Checkpoint(names.Home(req.GetRunId(), req.GetChain()), req.GetGeneration(), m.name, m.claim)
	return &historyv1.Checkpoint{Key: key}, r.store.Put(ctx, key, data)
}

// loadCheckpoint returns the checkpoint that a member finds in its file at the start, or nil. If the stored value is
// lost, the member begins from scratch, which costs only time.
func (r records) loadCheckpoint(ctx context.Context, req *historyv1.ExecuteRequest, m *member) ([]byte, error) {
	switch {
	case m.checkpoint == nil, m.checkpoint.GetKey() == "" && m.checkpoint.Data == nil && m.checkpoint.GetJournal() != "":
		return nil, nil
	case m.checkpoint.GetKey() == "":
		return append([]byte{}, m.checkpoint.GetData()...), nil
	}
	data, err := r.store.Await(ctx, m.checkpoint.GetKey(), store.Arrival)
	if errors.Is(err, store.ErrNotFound) {
		r.logger.Warn("a checkpoint is lost", "run", req.GetRunId(), "task", m.name, "error", err)
		if m.checkpoint.GetJournal() == "" {
			m.checkpoint = nil
		} else {
			m.checkpoint = &historyv1.Checkpoint{Journal: m.checkpoint.GetJournal()}
		}
		return nil, nil
	}
	return data, err
}
