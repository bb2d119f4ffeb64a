package run

import (
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/eventlog"
	"switchyard/workflows/names"
)

// cacheScope returns whose cached results the run reads and keeps. A user has results of its own: whoever may submit any
// definition could otherwise read what tasks of others have left, and leave something in their place.
func (r *run) cacheScope() string {
	role := v1.ParseRole(r.in.GetByRole())
	if r.in.GetPart() != nil || role == v1.Role_ROLE_UNSPECIFIED || role.Includes(v1.Role_ROLE_OPERATOR) {
		return r.in.GetCacheScope()
	}
	return r.status.Run.GetSubmittedBy()
}

// looksUp reports whether a task that wants a node is first to be looked up among
// the cached results: its first attempt is.
func (r *run) looksUp(i int) bool {
	return r.core.Definition(i).GetCache() != nil && r.core.Task(i).Attempt == 0 && !r.status.HasCacheKey(i)
}

// cacheAnswered continues with a task whose cache key has been evaluated: a result
// that is there is reused, and else the task runs. So does one whose key cannot be
// evaluated, which the events and its log say; its result is not kept.
func (r *run) cacheAnswered(i int, a *v1.ConditionAnswer) {
	if a.GetError() != "" {
		r.status.Extras(i).Uncached = "runs without the cache: " + a.GetError()
		rec := r.core.Task(i)
		r.log.Add(workflow.Now(r.ctx), v1.EventQueued, i, "", rec.Attempt, rec.Claim, r.status.Extras(i).Uncached, eventlog.KeyError.Of(a.GetError()))
	}
	cached := a.GetCached()
	if r.in.GetGeneration() > 0 && cached.GetRunId() == r.id {
		cached = nil // what is done again is not answered by what it did before
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

// runForCache has a task run whose result is kept under a key.
func (r *run) runForCache(i int, key string) {
	r.status.Extras(i).CacheKey = key
	r.want(i)
}

// keepResult has a completed result kept for later runs if the task says so.
func (r *run) keepResult(end dispatchEnd) {
	if end.ended.State == v1.TaskCompleted && r.status.HasCacheKey(end.ended.Task) {
		r.completed = append(r.completed, end)
	}
}

// saveCached keeps completed results for later runs.
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
