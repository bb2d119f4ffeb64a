package run

import (
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/core/flight"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/names"
)

// resultCache reuses the cached results of earlier runs, and caches those of this run.
type resultCache struct {
	*execution
	evaluator asker
	store     cacheStore

	completed []flight.End // ends whose results are to be cached
}

// The resultCache uses these parts of other components.
type (
	cacheStore interface {
		callOnce(summary, activity string, args ...any) workflow.Future
	}
)

// looksUp reports whether a task that needs a node is looked up in the result cache first. Only its first attempt is.
func (rc *resultCache) looksUp(i int) bool {
	return rc.core.Definition(i).GetCache() != nil && rc.core.Task(i).Attempt == 0 && rc.records.Of(i).CacheKey == ""
}

// want queues a startable task for admission, unless a result for it is cached.
func (rc *resultCache) want(i int) {
	if rc.looksUp(i) {
		rc.evaluator.ask(question{task: i, kind: asksCache, claim: rc.core.Task(i).Claim, answered: func(a *v1.ConditionAnswer) { rc.answered(i, a) }})
		return
	}
	rc.fly(rc.flight.Want(i))
}

// answered continues with a task whose cache key has been evaluated. If there is a cached result, the task reuses it;
// otherwise the task runs. If the key cannot be evaluated, the task also runs, its events and log state the error, and its
// result is not cached.
func (rc *resultCache) answered(i int, a *v1.ConditionAnswer) {
	if a.GetError() != "" {
		uncached := "runs without the cache: " + a.GetError()
		rc.records.At(i).Uncached = uncached
		rec := rc.core.Task(i)
		rc.log.Add(rc.now(), v1.EventQueued, i, "", rec.Attempt, rec.Claim, uncached, eventlog.KeyError.Of(a.GetError()))
	}
	cached := a.GetCached()
	if rc.in.GetGeneration() > 0 && cached.GetRunId() == rc.id {
		cached = nil // a rerun must not reuse its own earlier result
	}
	if cached == nil {
		rc.runForCache(i, a.GetText())
		return
	}
	claim := rc.core.Task(i).Claim
	rc.updateContext(cached.GetResponse().GetResult().GetContextUpdate(), func(refusal string) {
		switch {
		case !rc.isQueued(i, claim): // it has ended meanwhile
		case refusal != "":
			rc.runForCache(i, a.GetText())
		default:
			rc.records.At(i).SetResult(cached.GetResponse())
			rc.status.SetCached(i, cached.GetRunId())
			rc.raise(dag.Reused{Task: i, Claim: claim, ExitCode: cached.GetResponse().GetResult().GetExitCode()})
		}
	})
}

// runForCache runs a task and caches its result under a key.
func (rc *resultCache) runForCache(i int, key string) {
	rc.records.At(i).CacheKey = key
	rc.fly(rc.flight.Want(i))
}

// queue queues a completed result for the cache.
func (rc *resultCache) queue(end flight.End) { rc.completed = append(rc.completed, end) }

// save writes queued results to the cache.
func (rc *resultCache) save() {
	if len(rc.completed) == 0 {
		return
	}
	var saved []workflow.Future
	for _, end := range rc.completed {
		i := end.Ended.Task
		at := end.Response.GetCompletedAt()
		if at == nil {
			at = timestamppb.New(rc.now())
		}
		saved = append(saved, rc.store.callOnce("keep results for later runs", names.SaveCachedActivity, &v1.SaveCachedRequest{
			Workflow: rc.in.GetDefinition().GetName(),
			Task:     rc.graph.Name(rc.core.TaskOf(i)),
			Key:      rc.records.Of(i).CacheKey,
			Scope:    rc.cacheScope(),
			Result:   &v1.CachedResult{RunId: rc.id, CompletedAt: at, Response: end.Response},
		}))
	}
	rc.completed = nil
	for _, f := range saved {
		if err := f.Get(rc.ctx, nil); err != nil {
			workflow.GetLogger(rc.ctx).Warn("could not keep a result for later runs", "error", err)
		}
	}
}
