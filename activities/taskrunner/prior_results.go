package taskrunner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/results"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// The pause between two tries to read records starts at firstReadPause and doubles up to lastReadPause.
const firstReadPause, lastReadPause = 100 * time.Millisecond, 2 * time.Second

// priorResult is the recorded result of an earlier attempt that completed but was never reported.
type priorResult struct {
	res *historyv1.ExecuteResponse
	// reference names the record of the result.
	reference string
}

// cut returns the part of the answer that may travel. It names the record even if the answer is complete, because the
// record names the attempt that ran.
func (a priorResult) cut(limit int) *historyv1.ExecuteResponse {
	res := results.Cut(a.res, a.reference, limit)
	if res == a.res {
		res = proto.CloneOf(res)
	}
	res.Record = a.reference
	return res
}

// priorResults calls findPriorResults with the store of the node.
func (r records) priorResults(ctx context.Context, req *historyv1.ExecuteRequest, members []member) (map[int32]priorResult, error) {
	return findPriorResults(ctx, r.store, req, members)
}

// findPriorResults returns the results of members that completed in an attempt that ended without a report, by index. A
// recorded failure does not count.
func findPriorResults(ctx context.Context, s *store.Store, req *historyv1.ExecuteRequest, members []member) (map[int32]priorResult, error) {
	var found map[int32]priorResult
	missing := map[int32]bool{} // instances that a batch may have completed
	for i := range members {
		m := &members[i]
		if len(m.unacknowledged) == 0 && len(m.left) == 0 {
			continue
		}
		a, err := recordedResult(ctx, s, req, m)
		switch {
		case err != nil:
			return nil, err
		case a.res == nil:
			missing[m.index] = m.index >= 0
			continue
		case found == nil:
			found = map[int32]priorResult{}
		}
		found[m.index] = a
	}
	return batchResults(ctx, s, req, missing, found)
}

// recordedResult returns the recorded result of a member that ran alone, or a zero one if there is none.
func recordedResult(ctx context.Context, s *store.Store, req *historyv1.ExecuteRequest, m *member) (priorResult, error) {
	keys := slices.Clone(m.left)
	for _, attempt := range m.unacknowledged {
		keys = append(keys, storekey.Result(names.Home(req.GetRunId(), req.GetChain()), req.GetGeneration(), m.name, attempt))
	}
	for _, key := range keys {
		record, err := s.GetResult(ctx, key)
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return priorResult{}, fmt.Errorf("look for an earlier result of %s: %w", m.name, err)
		case v1.IsTaskSuccess(record.GetState()):
			return priorResult{record, key}, nil
		}
	}
	return priorResult{}, nil
}

// batchResults adds the results of missing instances that the records of batches hold to found.
func batchResults(ctx context.Context, s *store.Store, req *historyv1.ExecuteRequest, missing map[int32]bool, found map[int32]priorResult) (map[int32]priorResult, error) {
	if len(missing) == 0 || missing[-1] {
		return found, nil
	}
	own := batchKey(req)
	for key, err := range s.Keys(ctx, storekey.BatchesPrefix(names.Home(req.GetRunId(), req.GetChain()), req.GetGeneration(), req.GetTask())) {
		if err != nil {
			return nil, fmt.Errorf("look for the results of batches of %s: %w", req.GetTask(), err)
		}
		if first, last, ok := storekey.ParseBatch(key); !ok || key == own && !req.GetReattach() || !anyWithin(missing, int32(first), int32(last)) {
			continue
		}
		var record historyv1.ExecuteResponse
		if err := s.GetMessage(ctx, key, &record); err != nil {
			return nil, fmt.Errorf("look for the results of a batch of %s: %w", req.GetTask(), err)
		}
		for _, r := range record.GetBatch() {
			if !missing[r.GetIndex()] || r.GetState() != "" && r.GetState() != v1.TaskCompleted {
				continue
			}
			if found == nil {
				found = map[int32]priorResult{}
			}
			found[r.GetIndex()] = priorResult{store.MemberAnswer(&record, r), store.MemberReference(key, r.GetIndex())}
			delete(missing, r.GetIndex())
		}
	}
	return found, nil
}

func anyWithin(indices map[int32]bool, first, last int32) bool {
	for i := range indices {
		if first <= i && i <= last {
			return true
		}
	}
	return false
}

// awaitPriorResults calls priorResults until it succeeds: while the store is away, it is unknown whether the task must
// run at all. The error is that of ctx.
func (r records) awaitPriorResults(ctx context.Context, req *historyv1.ExecuteRequest, members []member) (map[int32]priorResult, error) {
	for pause := firstReadPause; ; pause = min(2*pause, lastReadPause) {
		found, err := r.priorResults(ctx, req, members)
		if err == nil {
			return found, nil
		}
		r.logger.Debug("records could not be read", "run", req.GetRunId(), "task", req.GetTask(), "error", err)
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
