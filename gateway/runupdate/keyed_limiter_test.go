package runupdate

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"switchyard/dev/testneeds"
)

func TestMain(m *testing.M) { testneeds.NoLeaks(m) }

// TestKeyedLimiterBoundsCallersPerKey checks that a key admits a bounded number of concurrent callers, that keys are
// independent, and that no entry is left behind.
func TestKeyedLimiterBoundsCallersPerKey(t *testing.T) {
	t.Parallel()
	var turns keyedLimiter
	var most, now atomic.Int32
	var wg sync.WaitGroup
	for range 5 * runUpdates {
		wg.Go(func() {
			giveBack, err := turns.acquire(t.Context(), "run")
			if err != nil {
				t.Error(err)
				return
			}
			n := now.Add(1)
			for seen := most.Load(); n > seen && !most.CompareAndSwap(seen, n); seen = most.Load() {
			}
			now.Add(-1)
			giveBack()
		})
	}
	wg.Wait()
	if n := most.Load(); n > runUpdates {
		t.Errorf("%d at once", n)
	}

	var taken []func()
	for range runUpdates {
		giveBack, err := turns.acquire(t.Context(), "run")
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, giveBack)
	}
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	if _, err := turns.acquire(ctx, "run"); !errors.Is(err, enough) {
		t.Errorf("one too many: %v", err)
	}
	giveBack, err := turns.acquire(t.Context(), "another run")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range append(taken, giveBack) {
		f()
	}
	if n := len(turns.open); n != 0 {
		t.Errorf("%d are left", n)
	}
}
