package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/names"
)

// Pause between two tries to read records, doubling.
const firstReadPause, lastReadPause = 100 * time.Millisecond, 2 * time.Second

// answer is what an earlier attempt, of which nobody heard, has left: it has completed.
type answer struct {
	res *v1.ExecuteResponse
	// reference is to the record that says so.
	reference string
}

// cut returns what of the answer may travel. It names the record even if that is all, because the
// record tells which attempt ran.
func (a answer) cut(limit int) *v1.ExecuteResponse {
	res := cut(a.res, a.reference, limit)
	if res == a.res {
		res = proto.CloneOf(res)
	}
	res.Record = a.reference
	return res
}

// answers is findAnswers in the store of the node.
func (n *Node) answers(ctx context.Context, req *v1.ExecuteRequest, members []member) (map[int32]answer, error) {
	return findAnswers(ctx, n.Store, req, members)
}

// findAnswers looks which of the members of a request have completed in one of the
// attempts that ended without a report. A recorded failure is no answer.
func findAnswers(ctx context.Context, s *store.Store, req *v1.ExecuteRequest, members []member) (map[int32]answer, error) {
	var found map[int32]answer
	missing := map[int32]bool{} // instances that a batch may have completed
	for i := range members {
		m := &members[i]
		if len(m.unheard) == 0 && len(m.left) == 0 {
			continue
		}
		a, err := ownAnswer(ctx, s, req, m)
		switch {
		case err != nil:
			return nil, err
		case a.res == nil:
			missing[m.index] = m.index >= 0
			continue
		case found == nil:
			found = map[int32]answer{}
		}
		found[m.index] = a
	}
	return batchAnswers(ctx, s, req, missing, found)
}

// ownAnswer looks into the records of the attempts of a member that ran alone.
func ownAnswer(ctx context.Context, s *store.Store, req *v1.ExecuteRequest, m *member) (answer, error) {
	keys := slices.Clone(m.left)
	for _, attempt := range m.unheard {
		keys = append(keys, store.ResultKey(names.Home(req.GetRunId(), req.GetChain()), req.GetGeneration(), m.name, attempt))
	}
	for _, key := range keys {
		var record v1.ExecuteResponse
		switch err := s.GetMessage(ctx, key, &record); {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return answer{}, fmt.Errorf("look for an earlier result of %s: %w", m.name, err)
		case record.GetState() == v1.TaskCompleted:
			return answer{&record, key}, nil
		}
	}
	return answer{}, nil
}

// batchAnswers adds to found what the records of batches say of missing instances.
func batchAnswers(ctx context.Context, s *store.Store, req *v1.ExecuteRequest, missing map[int32]bool, found map[int32]answer) (map[int32]answer, error) {
	if len(missing) == 0 || missing[-1] {
		return found, nil
	}
	own := batchKey(req)
	for key, err := range s.Keys(ctx, store.BatchesPrefix(names.Home(req.GetRunId(), req.GetChain()), req.GetGeneration(), req.GetTask())) {
		if err != nil {
			return nil, fmt.Errorf("look for the results of batches of %s: %w", req.GetTask(), err)
		}
		if first, last, ok := store.ParseBatchKey(key); !ok || key == own && !req.GetAdopt() || !anyWithin(missing, int32(first), int32(last)) {
			continue
		}
		var record v1.ExecuteResponse
		if err := s.GetMessage(ctx, key, &record); err != nil {
			return nil, fmt.Errorf("look for the results of a batch of %s: %w", req.GetTask(), err)
		}
		for _, r := range record.GetBatch() {
			if !missing[r.GetIndex()] || r.GetState() != "" && r.GetState() != v1.TaskCompleted {
				continue
			}
			if found == nil {
				found = map[int32]answer{}
			}
			found[r.GetIndex()] = answer{store.MemberAnswer(&record, r), store.MemberReference(key, r.GetIndex())}
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

// awaitAnswers is answers with patience: while the store is away it is not known
// whether the task must run at all. The error is that of ctx.
func (n *Node) awaitAnswers(ctx context.Context, req *v1.ExecuteRequest, members []member) (map[int32]answer, error) {
	for pause := firstReadPause; ; pause = min(2*pause, lastReadPause) {
		found, err := n.answers(ctx, req, members)
		if err == nil {
			return found, nil
		}
		n.Logger.Debug("records could not be read", "run", req.GetRunId(), "task", req.GetTask(), "error", err)
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}
