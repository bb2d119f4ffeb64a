package run

import (
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/names"
)

// cacheScope returns the owner of the cached results that the run reads and writes. Each user has a separate scope: otherwise
// anyone who may submit a definition could read the results of other users' tasks, or replace them.
func (r *run) cacheScope() string {
	role := v1.ParseRole(r.in.GetByRole())
	if r.in.GetPartition() != nil || role == v1.Role_ROLE_UNSPECIFIED || role.Includes(v1.Role_ROLE_OPERATOR) {
		return r.in.GetCacheScope()
	}
	return r.status.Run.GetSubmittedBy()
}

// looksUp reports whether a task that needs a node is looked up in the result cache first. Only its first attempt is.
func (r *run) looksUp(i int) bool {
	return r.core.Definition(i).GetCache() != nil && r.core.Task(i).Attempt == 0 && !r.status.HasCacheKey(i)
}

// cacheAnswered continues with a task whose cache key has been evaluated. If there is a cached result, the task reuses it;
// otherwise the task runs. If the key cannot be evaluated, the task also runs, its events and log state the error, and its
// result is not cached.
func (r *run) cacheAnswered(i int, a *v1.ConditionAnswer) {
	if a.GetError() != "" {
		r.status.Extras(i).Uncached = "runs without the cache: " + a.GetError()
		rec := r.core.Task(i)
		r.log.Add(workflow.Now(r.ctx), v1.EventQueued, i, "", rec.Attempt, rec.Claim, r.status.Extras(i).Uncached, eventlog.KeyError.Of(a.GetError()))
	}
	cached := a.GetCached()
	if r.in.GetGeneration() > 0 && cached.GetRunId() == r.id {
		cached = nil // a rerun must not reuse its own earlier result
	}
	if cached == nil {
		r.runForCache(i, a.GetText())
		return
	}
	asked := question{task: i, kind: asksCache, claim: r.core.Task(i).Claim}
	r.addToContext(cached.GetResponse().GetResult().GetContextUpdate(), func(refusal string) {
		switch {
		case !r.wanted(asked): // it has ended meanwhile
		case refusal != "":
			r.runForCache(i, a.GetText())
		default:
			r.status.SetCached(i, cached)
			r.events = append(r.events, dag.Reused{Task: i, Claim: asked.claim, ExitCode: cached.GetResponse().GetResult().GetExitCode()})
		}
	})
}

// runForCache runs a task and caches its result under a key.
func (r *run) runForCache(i int, key string) {
	r.status.Extras(i).CacheKey = key
	r.want(i)
}

// keepResult queues a completed result for the cache if the task has a cache key.
func (r *run) keepResult(end dispatchEnd) {
	if end.ended.State == v1.TaskCompleted && r.status.HasCacheKey(end.ended.Task) {
		r.completed = append(r.completed, end)
	}
}

// saveCached writes queued results to the cache.
func (r *run) saveCached() {
	if len(r.completed) == 0 {
		return
	}
	var saved []workflow.Future
	for _, end := range r.completed {
		i := end.ended.Task
		at := end.res.GetCompletedAt()
		if at == nil {
			at = timestamppb.New(workflow.Now(r.ctx))
		}
		saved = append(saved, r.callOnce("keep results for later runs", names.SaveCachedActivity, &v1.SaveCachedRequest{
			Workflow: r.in.GetDefinition().GetName(),
			Task:     r.graph.Name(r.status.TaskOf(i)),
			Key:      r.status.Extras(i).CacheKey,
			Scope:    r.cacheScope(),
			Result:   &v1.CachedResult{RunId: r.id, CompletedAt: at, Response: end.res},
		}))
	}
	r.completed = nil
	for _, f := range saved {
		if err := f.Get(r.ctx, nil); err != nil {
			workflow.GetLogger(r.ctx).Warn("a result could not be kept for later runs", "error", err)
		}
	}
}
