package status

import v1 "switchyard/proto/switchyard/v1"

// SetCached shows the result of an earlier run as that of task i.
func (t *table) SetCached(i int, cached *v1.CachedResult) {
	t.extrasOf(i).cachedFrom = cached.GetRunId()
	t.change(i, func(e *entry) {
		e.result, e.record = shownResult(cached.GetResponse()), cached.GetResponse().GetRecord()
	})
}
