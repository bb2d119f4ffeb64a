package taskrunner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/results"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// answerTimeout bounds how long the report of an attempt waits for a store that is away, if its answer is too large to
// travel. Until then the attempt sends heartbeats although its process has ended.
const answerTimeout = 10 * time.Minute

// putRecord stores the answer of an attempt, unless a record with a completed or stopped answer exists: the first such
// answer counts. It returns the answer that counts.
func (r records) putRecord(ctx context.Context, key string, res *historyv1.ExecuteResponse) (*historyv1.ExecuteResponse, error) {
	existed, err := r.store.PutMessageIfAbsent(ctx, key, res)
	if err != nil || !existed {
		return res, err
	}
	var first historyv1.ExecuteResponse
	if err := r.store.GetMessage(ctx, key, &first); err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if v1.IsTaskSuccess(first.GetState()) {
		return &first, nil
	}
	return res, r.store.PutMessage(ctx, key, res)
}

// keepResult records the answer of a member if it is completed or stopped, or if it is too large to travel. It returns
// the part of the answer that may travel. If a small answer cannot be recorded, the attempt is reported regardless: the
// record matters only if the report is lost, too.
func (r records) keepResult(ctx context.Context, req *historyv1.ExecuteRequest, m *member, res *historyv1.ExecuteResponse) (*historyv1.ExecuteResponse, error) {
	limit := int(req.GetInlineLimit())
	whole := results.Fits(res, limit)
	if whole && !v1.IsTaskSuccess(res.GetState()) {
		return res, nil
	}
	if whole {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, r.timeout)
		defer cancel()
	}
	key := storekey.Result(names.Home(req.GetRunId(), req.GetChain()), req.GetGeneration(), m.name, m.attempt)
	record := withoutAgentEvents(res)
	var first *historyv1.ExecuteResponse
	err := r.insist(ctx, func() (err error) {
		first, err = r.putRecord(ctx, key, record)
		return err
	})
	if first == record {
		first = res
	}
	switch {
	case err == nil:
		return results.Cut(first, key, limit), nil
	case whole:
		r.logger.Warn("a result was not recorded", "run", req.GetRunId(), "task", m.name, "error", err)
		return res, nil
	}
	return nil, fmt.Errorf("store the result of %s: %w", m.name, err)
}

// withoutAgentEvents returns an answer without its agent events, which the run keeps among its own.
func withoutAgentEvents(res *historyv1.ExecuteResponse) *historyv1.ExecuteResponse {
	if len(res.GetAgentEvents()) == 0 {
		return res
	}
	record := proto.CloneOf(res)
	record.AgentEvents = nil
	return record
}
