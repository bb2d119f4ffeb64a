package singleflight

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
)

func TestWorkRunsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Group[[]string]
		var started int
		release := make(chan struct{})
		work := func(ctx context.Context, say func(string)) ([]string, error) {
			started++
			say("begun")
			<-release
			say("over")
			return []string{"x"}, nil
		}
		var all sync.WaitGroup
		heard := make([][]string, 20)
		for i := range heard {
			all.Go(func() {
				got, err := f.Do(t.Context(), "k", func(line string) { heard[i] = append(heard[i], line) }, work)
				if err != nil || !slices.Equal(got, []string{"x"}) {
					t.Errorf("%v, %v", got, err)
				}
			})
		}
		synctest.Wait()
		close(release)
		all.Wait()
		if started != 1 {
			t.Errorf("done %d times", started)
		}
		whole := 0
		for _, lines := range heard {
			if slices.Equal(lines, []string{"begun", "over"}) {
				whole++
			} else if !slices.Equal(lines, []string{"over"}) {
				t.Errorf("one heard %q", lines)
			}
		}
		if whole == 0 {
			t.Error("nobody heard it from the start")
		}
		if len(f.underWay) > 0 {
			t.Error("it is still under way")
		}
	})
}

func TestWorkOutlivesACallerThatLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Group[[]string]
		release := make(chan struct{})
		ended := false
		work := func(ctx context.Context, say func(string)) ([]string, error) {
			select {
			case <-release:
				return nil, nil
			case <-ctx.Done():
				ended = true
				return nil, ctx.Err()
			}
		}
		leaving, leave := context.WithCancel(t.Context())
		errs := make(chan error, 2)
		go func() { _, err := f.Do(leaving, "k", func(string) {}, work); errs <- err }()
		synctest.Wait()
		staying, leaveToo := context.WithCancel(t.Context())
		go func() { _, err := f.Do(staying, "k", func(string) {}, work); errs <- err }()
		synctest.Wait()
		leave()
		if err := <-errs; !errors.Is(err, context.Canceled) || ended {
			t.Fatalf("%v; the work has ended: %v", err, ended)
		}
		leaveToo()
		if err := <-errs; !errors.Is(err, context.Canceled) || !ended {
			t.Fatalf("%v; nobody waits, and the work has ended: %v", err, ended)
		}
		go func() { close(release) }()
		if _, err := f.Do(t.Context(), "k", func(string) {}, work); err != nil {
			t.Errorf("the next one gets %v", err)
		}
	})
}

// TestWorkNeedsNoListener checks that a caller that does not read its lines delays
// no other caller.
func TestWorkNeedsNoListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var f Group[[]string]
		const lines = 10 * linesAhead
		deaf := make(chan struct{})
		var all sync.WaitGroup
		all.Go(func() {
			_, _ = f.Do(t.Context(), "k", func(string) { <-deaf }, func(ctx context.Context, say func(string)) ([]string, error) {
				for range lines {
					say("line")
				}
				close(deaf)
				return nil, nil
			})
		})
		all.Wait()
	})
}
