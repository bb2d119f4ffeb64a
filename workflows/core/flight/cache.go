package flight

import (
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/core/dag"
	"switchyard/workflows/eventlog"
)

// Want queues a startable task for admission, unless a result for it is cached. Only the first attempt of a task is looked up.
func (s *State) Want(i int) []Effect {
	if s.core.Definition(i).GetCache() != nil && s.core.Task(i).Attempt == 0 && s.records.Of(i).CacheKey == "" {
		return []Effect{LookUp{Task: i, Claim: s.claimOf(i)}}
	}
	s.want(i)
	return s.take()
}

// LookedUp continues with a task whose cache key has been evaluated. If there is a cached result, the task reuses it; otherwise the
// task runs. If the key cannot be evaluated, the task also runs, its events and log state the error, and its result is not cached.
func (s *State) LookedUp(i int, a *historyv1.ConditionAnswer) []Effect {
	if a.GetError() != "" {
		why := "runs without the cache: " + a.GetError()
		s.records.At(i).Uncached = why
		s.do(Show{Task: i, Event: v1.EventQueued, Text: why, Facts: []eventlog.Fact{eventlog.KeyError.Of(a.GetError())}})
	}
	cached := a.GetCached()
	if s.Input.GetGeneration() > 0 && cached.GetRunId() == s.RunID {
		cached = nil // a rerun must not reuse its own earlier result
	}
	if cached == nil {
		s.wantForCache(i, a.GetText())
	} else {
		s.do(SettleCached{i, s.claimOf(i), a.GetText(), cached})
	}
	return s.take()
}

// CachedSettled reuses a cached result whose update of the context is merged, or runs the task if it was refused.
func (s *State) CachedSettled(e SettleCached, refusal string) []Effect {
	rec := s.core.Task(e.Task)
	switch {
	case rec.State != v1.TaskQueued || rec.Claim != e.Claim: // it has ended meanwhile
	case refusal != "":
		s.wantForCache(e.Task, e.Key)
	default:
		r := s.records.At(e.Task)
		r.SetResult(e.Cached.GetResponse())
		r.CachedFrom = e.Cached.GetRunId()
		s.do(Show{Task: e.Task})
		s.raise(dag.Reused{Task: e.Task, Claim: e.Claim, ExitCode: e.Cached.GetResponse().GetResult().GetExitCode()})
	}
	return s.take()
}

// wantForCache queues a task whose result will be cached under a key.
func (s *State) wantForCache(i int, key string) {
	s.records.At(i).CacheKey = key
	s.want(i)
}
