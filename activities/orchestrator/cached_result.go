package orchestrator

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"switchyard/activities/artifacts"
	"switchyard/activities/results"
	"switchyard/activities/store"
	"switchyard/activities/store/storekey"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/condition"
)

// instanceKey returns the key under which the result of a task or instance is cached. Instances share an expression, so
// their key also contains their item, or their index if they have no items.
func instanceKey(cond *historyv1.Condition, item *structpb.Value, key string) string {
	_, index, ok := storekey.ParseInstanceName(cond.GetTask())
	if !ok {
		return key
	}
	if item != nil {
		return key + "\n" + condition.Text(item)
	}
	return fmt.Sprintf("%s\n%d", key, index)
}

// scopedKey returns the cache key for the requester named by scope, or for all requesters if scope is "".
func scopedKey(scope, key string) string {
	if scope == "" {
		return key
	}
	return scope + "\x00" + key
}

// cached returns a cached result that is young enough, or nil. A result that is too large to travel is copied into the
// requesting run, so that it lives as long as that run.
func (c *Control) cached(ctx context.Context, home, workflow, scope string, cond *historyv1.Condition, key string) (*historyv1.CachedResult, error) {
	task, _, _ := storekey.ParseInstanceName(cond.GetTask())
	var found historyv1.CachedResult
	err := c.Store.GetMessage(ctx, storekey.Cached(workflow, task, scopedKey(scope, key)), &found)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, storeError{err}
	case found.GetResponse().GetState() != v1.TaskCompleted:
		return nil, nil
	}
	if ttl := cond.GetTtl().AsDuration(); ttl > 0 && time.Since(found.GetCompletedAt().AsTime()) > ttl {
		return nil, nil
	}
	err = c.adoptArtifacts(ctx, home, cond.GetTask(), found.GetResponse().GetResult())
	_, isFull := errors.AsType[*store.ArtifactQuotaError](err)
	switch {
	case isFull, errors.Is(err, store.ErrNotFound):
		return nil, nil
	case err != nil:
		return nil, storeError{err}
	}
	const room = results.MaxInline
	if results.Fits(found.GetResponse(), room) {
		return &found, nil
	}
	value, err := proto.MarshalOptions{Deterministic: true}.Marshal(found.GetResponse())
	if err != nil {
		return nil, err
	}
	record := storekey.Reused(home, storekey.Digest(value))
	if err := c.Store.Put(ctx, record, value); err != nil {
		return nil, storeError{err}
	}
	found.Response = results.Cut(found.GetResponse(), record, room)
	return &found, nil
}

// adoptArtifacts makes the artifacts of a cached result those of the requesting run. It returns store.ErrNotFound if one was removed
// with the run that left it.
func (c *Control) adoptArtifacts(ctx context.Context, home, task string, result *v1.TaskResult) error {
	library := artifacts.Library{Store: c.Store}
	for i, a := range result.GetArtifacts() {
		adopted, err := library.Adopt(ctx, a, storekey.AdoptedArtifact(home, task, a.GetManifest()))
		if err != nil {
			return err
		}
		result.Artifacts[i] = adopted
	}
	return nil
}

// SaveCached caches a completed result for later runs. It stores the whole result, because the cache outlives the run.
// The newest result under a key wins.
func (c *Control) SaveCached(ctx context.Context, req *historyv1.SaveCachedRequest) error {
	res := req.GetResult().GetResponse()
	if res.GetState() != v1.TaskCompleted {
		return temporal.NewNonRetryableApplicationError(fmt.Sprintf("the result of %s is %s; only completed ones are cached", req.GetTask(), res.GetState()), "not_completed", nil)
	}
	result := &historyv1.CachedResult{RunId: req.GetResult().GetRunId(), CompletedAt: req.GetResult().GetCompletedAt(), Response: proto.CloneOf(res)}
	if key := res.GetRecord(); key != "" {
		record, err := c.Store.AwaitResult(ctx, key, store.Arrival)
		if errors.Is(err, store.ErrNotFound) {
			return temporal.NewNonRetryableApplicationError(fmt.Sprintf("the result of %s is not in the store", req.GetTask()), "not_found", err)
		}
		if err != nil {
			return err
		}
		result.Response.Result, result.Response.Record = record.GetResult(), ""
	}
	task, _, _ := storekey.ParseInstanceName(req.GetTask())
	return c.Store.PutMessage(ctx, storekey.Cached(req.GetWorkflow(), task, scopedKey(req.GetScope(), req.GetKey())), result)
}
