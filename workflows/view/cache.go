package view

// SetCached shows that task i has the result of an earlier run.
func (t *table) SetCached(i int, run string) {
	t.extrasOf(i).cachedFrom = run
	t.Touch(i)
}
