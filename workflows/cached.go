package workflows

import (
	"go.temporal.io/sdk/workflow"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/dag"
	"switchyard/workflows/names"
)

// looksUp says whether a task that wants a node is first to be looked up among
// the cached results: its first attempt is.
func (r *run) looksUp(i int) bool {
	return r.core.Definition(i).GetCache() != nil && r.core.Task(i).Attempt == 0 && !r.board.knowsCacheKey(i)
}

// cacheAnswered goes on with a task whose cache key has been evaluated: a result
// that is there is reused, and else the task runs. So does one whose key cannot be
// told, which the events and its log say; its result is kept for nobody.
func (r *run) cacheAnswered(i int, a *v1.ConditionAnswer) {
	if a.GetError() != "" {
		r.board.rare(i).uncached = "runs without the cache: " + a.GetError()
		rec := r.core.Task(i)
		r.log.add(workflow.Now(r.ctx), v1.EventQueued, i, "", rec.Attempt, rec.Claim, r.board.rare(i).uncached, fact{dataError, a.GetError()})
	}
	cached := a.GetCached()
	if r.in.GetGeneration() > 0 && cached.GetRunId() == r.id {
		cached = nil // what is done again is not answered by what it did before
	}
	if cached == nil || r.mergeContext(cached.GetResponse().GetResult().GetContextUpdate()) != nil {
		r.board.rare(i).cacheKey = a.GetText()
		r.want(i)
		return
	}
	r.board.reuse(i, cached)
	r.events = append(r.events, dag.Reused{
		Task: i, Claim: r.core.Task(i).Claim, ExitCode: cached.GetResponse().GetResult().GetExitCode(),
	})
}

// reuse shows the result of an earlier run as that of task i.
func (b *board) reuse(i int, cached *v1.CachedResult) {
	b.rare(i).cachedFrom = cached.GetRunId()
	b.change(i, func(e *entry) {
		e.result, e.record = shownResult(cached.GetResponse()), cached.GetResponse().GetRecord()
	})
}

func (b *board) knowsCacheKey(i int) bool {
	m := b.entries[i].more
	return m != nil && m.cacheKey != ""
}

// noticesFor are what the log of a dispatch is to say first. Of a batch the first instance of which there is
// something to say stands for the others.
func (b *board) noticesFor(members []int) []string {
	for _, i := range members {
		m := b.entries[i].more
		if m == nil || m.uncached == "" {
			continue
		}
		if len(members) > 1 {
			return []string{b.name(i) + " " + m.uncached}
		}
		return []string{m.uncached}
	}
	return nil
}

// keepResult has a completed result kept for later runs if the task says so.
func (r *run) keepResult(end dispatchEnd) {
	if end.ended.State == v1.TaskCompleted && r.board.knowsCacheKey(end.ended.Task) {
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
			Task:     r.graph.Name(r.board.task(i)),
			Key:      r.board.rare(i).cacheKey,
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
