package activities

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/protobuf/proto"

	"switchyard/activities/store"
	v1 "switchyard/proto/switchyard/v1"
)

const (
	// recordTimeout bounds how long the report of a completed attempt waits for its
	// record, when it can do without.
	recordTimeout = 10 * time.Second
	// Pause between two tries to read a record, doubling.
	firstReadPause, lastReadPause = 100 * time.Millisecond, 2 * time.Second
)

// answered looks whether one of the attempts whose end nobody heard of has
// completed: what its record says is the answer then, with the record's key.
// Without one it returns nil. A recorded failure is no answer.
func (n *Node) answered(ctx context.Context, req *v1.ExecuteRequest) (*v1.ExecuteResponse, string, error) {
	for _, attempt := range req.GetUnheard() {
		key := store.ResultKey(req.GetRunId(), req.GetGeneration(), req.GetTask(), attempt)
		var record v1.ExecuteResponse
		switch err := n.Store.GetMessage(ctx, key, &record); {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return nil, "", fmt.Errorf("look for the result of attempt %d of %s: %w", attempt, req.GetTask(), err)
		case record.GetState() == "completed":
			return &record, key, nil
		}
	}
	return nil, "", nil
}

// awaitAnswered is answered with patience: while the store is away it is not known
// whether the task must run at all. The error is that of ctx.
func (n *Node) awaitAnswered(ctx context.Context, req *v1.ExecuteRequest) (*v1.ExecuteResponse, string, error) {
	for pause := firstReadPause; ; pause = min(2*pause, lastReadPause) {
		record, key, err := n.answered(ctx, req)
		if err == nil {
			return record, key, nil
		}
		n.Logger.Debug("a record could not be read", "run", req.GetRunId(), "task", req.GetTask(), "error", err)
		select {
		case <-ctx.Done():
			return nil, "", context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// record stores the answer of an attempt, unless there is one that says completed:
// the first one counts. It returns the one that does.
func (n *Node) record(ctx context.Context, key string, res *v1.ExecuteResponse) (*v1.ExecuteResponse, error) {
	existed, err := n.Store.PutMessageIfAbsent(ctx, key, res)
	if err != nil || !existed {
		return res, err
	}
	var first v1.ExecuteResponse
	if err := n.Store.GetMessage(ctx, key, &first); err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, err
	}
	if first.GetState() == "completed" {
		return &first, nil
	}
	return res, n.Store.PutMessage(ctx, key, res)
}

// keep records an answer if it says completed, or if it is too large to travel, and
// returns what may travel of the one that counts. A completed attempt whose small
// answer cannot be recorded is reported nevertheless: the record is of use only
// when the report is lost, too.
func (n *Node) keep(ctx context.Context, req *v1.ExecuteRequest, res *v1.ExecuteResponse) (*v1.ExecuteResponse, error) {
	whole := fits(res, req)
	if whole && res.GetState() != "completed" {
		return res, nil
	}
	if whole {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, recordTimeout)
		defer cancel()
	}
	key := store.ResultKey(req.GetRunId(), req.GetGeneration(), req.GetTask(), req.GetAttempt())
	first, err := n.record(ctx, key, res)
	switch {
	case err == nil:
		return cut(first, key, req), nil
	case whole:
		n.Logger.Warn("a result was not recorded", "run", req.GetRunId(), "task", req.GetTask(), "error", err)
		return res, nil
	}
	return nil, fmt.Errorf("store the result of %s: %w", req.GetTask(), err)
}

// fits tells whether an answer may travel whole.
func fits(res *v1.ExecuteResponse, req *v1.ExecuteRequest) bool {
	r := res.GetResult()
	output := proto.Size(r.GetOutput())
	return output <= maxInlineOutput && output+len(r.GetStdout())+len(r.GetStderr()) <= int(req.GetInlineLimit())
}

// cut returns what of an answer may travel; it names the record when that is not all.
func cut(res *v1.ExecuteResponse, key string, req *v1.ExecuteRequest) *v1.ExecuteResponse {
	if fits(res, req) {
		return res
	}
	res = proto.CloneOf(res)
	res.Record = key
	r := res.GetResult()
	room := int(req.GetInlineLimit())
	if size := proto.Size(r.GetOutput()); size <= min(maxInlineOutput, room) {
		room -= size
	} else {
		r.Output = nil
	}
	// Standard error gets up to half: it is what explains a failure.
	errRoom := min(len(r.Stderr), max(room/2, room-len(r.Stdout)))
	r.Stderr, r.StderrTruncated = cutFront(r.Stderr, errRoom, r.StderrTruncated)
	r.Stdout, r.StdoutTruncated = cutFront(r.Stdout, room-errRoom, r.StdoutTruncated)
	return res
}
