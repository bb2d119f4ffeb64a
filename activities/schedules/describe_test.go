package schedules_test

import (
	"sync"
	"testing"

	"switchyard/workflows/names"
)

// TestScheduleIsReadByManyAtOnce reads a schedule with more concurrent callers than Temporal
// allows.
func TestScheduleIsReadByManyAtOnce(t *testing.T) {
	t.Parallel()
	store(t, "name: read-by-many\ntasks: { a: { type: shell, spec: { command: 'true' } } }\n")
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			if _, err := all().Describe(t.Context(), names.StoredWorkflowID("read-by-many")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
