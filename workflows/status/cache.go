package status

import v1 "switchyard/proto/switchyard/v1"

// SetCached shows the result of an earlier run as that of task i.
func (t *table) SetCached(i int, cached *v1.CachedResult) {
	t.Extras(i).cachedFrom = cached.GetRunId()
	t.change(i, func(e *entry) {
		e.result, e.record = shownResult(cached.GetResponse()), cached.GetResponse().GetRecord()
	})
}

// HasCacheKey reports whether the result of task i will be cached for later runs.
func (t *table) HasCacheKey(i int) bool {
	m := t.entries[i].extras
	return m != nil && m.CacheKey != ""
}

// Notices returns the lines with which the log of a dispatch begins. For a batch it returns the notice of the first instance
// that has one.
func (t *table) Notices(members []int) []string {
	for _, i := range members {
		m := t.entries[i].extras
		if m == nil || m.Uncached == "" {
			continue
		}
		if len(members) > 1 {
			return []string{t.Name(i) + " " + m.Uncached}
		}
		return []string{m.Uncached}
	}
	return nil
}
