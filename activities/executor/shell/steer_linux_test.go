package shell

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"switchyard/activities/executor"
)

// The suspension of one attempt does not affect the next one in the same process tree.
func TestPauseDoesNotAffectTheNextAttemptOfABatch(t *testing.T) {
	t.Parallel()
	pauseSparesTheNextOfABatch(t, portable)
}

func pauseSparesTheNextOfABatch(t *testing.T, m Mechanism) {
	e := newExecutor(t, Options{Mechanism: m})
	row, err := e.Batch(idPrefix+"/task[0]/c1", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer row.Close()
	for _, id := range []string{idPrefix + "/task[0]/c1", idPrefix + "/task[1]/c1"} {
		ctx, cancel := context.WithCancel(t.Context())
		a := executor.Attempt{ID: id, Spec: spec(t, map[string]any{"command": "sleep 1000"}), Dirs: executor.Dirs{Base: t.TempDir()}, Ending: executor.Ending{Grace: time.Minute}}
		var paused sync.WaitGroup
		ended := make(chan struct{})
		r, err := row.Run(ctx, a, func() {
			paused.Go(func() {
				defer cancel()
				for errors.Is(e.Pause(t.Context(), id), executor.ErrNotRunning) {
					select {
					case <-ended:
						return
					case <-time.After(time.Millisecond):
					}
				}
			})
		})
		close(ended)
		paused.Wait()
		if err != nil || r.Signal != "SIGTERM" {
			t.Errorf("%s has ended with %+v, %v", id, r, err)
		}
	}
}
