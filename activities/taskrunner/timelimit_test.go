package taskrunner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// Suspensions do not count towards the time limit of an attempt.
func TestTimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, limit, cancel := withTimeLimit(t.Context(), 10*time.Second, time.Time{})
		defer cancel()
		for range 3 {
			time.Sleep(3 * time.Second)
			limit.suspend()
			limit.suspend()
			time.Sleep(time.Hour)
			limit.resume()
			limit.resume()
		}
		time.Sleep(time.Second - time.Nanosecond)
		if ctx.Err() != nil {
			t.Error("over too soon")
		}
		time.Sleep(2 * time.Nanosecond)
		if context.Cause(ctx) != errTimeout {
			t.Errorf("ended by %v", context.Cause(ctx))
		}
		limit.suspend()
		limit.resume()
	})
}

// Time that has passed since the given start counts. A limit of 0 never ends the context.
func TestTimeLimitFrom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		time.Sleep(time.Minute)
		for limit, want := range map[time.Duration]time.Duration{time.Second: 0, 70 * time.Second: 10 * time.Second} {
			ctx, _, cancel := withTimeLimit(t.Context(), limit, began)
			from := time.Now()
			<-ctx.Done()
			if took := time.Since(from); took != want || context.Cause(ctx) != errTimeout {
				t.Errorf("%v ended after %v by %v", limit, took, context.Cause(ctx))
			}
			cancel()
			began = began.Add(time.Since(from))
		}
		ctx, none, cancel := withTimeLimit(t.Context(), 0, began)
		none.suspend()
		none.resume()
		time.Sleep(time.Hour)
		if ctx.Err() != nil {
			t.Error("no limit, and over")
		}
		cancel()
	})
}
