package activities

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"switchyard/activities/executor"
)

func TestArrivals(t *testing.T) {
	t.Parallel()
	const tolerance = time.Second
	// The server's clock differs from the node's by years; what comes at time 0
	// of the one was sent at this time of the other.
	epoch := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	type arrival struct {
		after time.Duration // since the first one, by the node's clock
		under time.Duration // way
		step  time.Duration // by which the server's clock was set since the first one
		fresh bool
	}
	for name, list := range map[string][]arrival{
		"at once": {{}, {after: 1}, {after: 2}, {after: 3, fresh: true}, {after: 4, fresh: true}},
		"one was long under way": {{}, {}, {}, {fresh: true}, {after: 20 * time.Second, under: 5 * time.Second}, {after: 21 * time.Second, fresh: true},
			{after: 22 * time.Second, under: tolerance + 1}, {after: 22 * time.Second, under: tolerance, fresh: true}},
		"the first ones were": {{under: time.Minute}, {under: time.Minute}, {under: time.Minute}, {under: 0}, {under: 0}, {under: 0}, {under: 0, fresh: true},
			{under: time.Minute}},
		"the server's clock goes forward": {{}, {}, {}, {fresh: true}, {step: time.Minute, under: 30 * time.Second}, {step: time.Minute},
			{step: time.Minute}, {step: time.Minute}, {step: time.Minute, fresh: true}},
		"the server's clock goes back": {{}, {}, {}, {fresh: true}, {step: -time.Minute}, {step: -time.Minute}, {step: -time.Minute},
			{after: 6 * time.Minute, step: -time.Minute}, {after: 7 * time.Minute, step: -time.Minute}, {after: 8 * time.Minute, step: -time.Minute}, {after: 12 * time.Minute, step: -time.Minute, fresh: true}},
		"nothing for long":   {{}, {}, {}, {fresh: true}, {after: time.Hour}, {after: time.Hour}, {after: time.Hour}, {after: time.Hour, fresh: true}},
		"seldom, but steady": {{}, {after: 4 * time.Minute}, {after: 8 * time.Minute}, {after: 9 * time.Minute, fresh: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var a arrivals
			start := executor.Now()
			for i, one := range list {
				sent := epoch.Add(one.after - one.under + one.step)
				if got := a.fresh(sent, start.Add(one.after), tolerance); got != one.fresh {
					t.Errorf("number %d: fresh is %v", i, got)
				}
			}
		})
	}
	if new(arrivals).fresh(time.Time{}, executor.Now(), tolerance) {
		t.Error("fresh, though it is not known when it was sent")
	}
}

// With clocks that nobody sets, none that was longer under way than the quickest
// by more than the tolerance passes for fresh, in whatever order they come.
func TestArrivalsAreNeverTakenForFreshWronglyAfterAQuickOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		tolerance := time.Duration(rapid.Int64Range(1, 1000).Draw(t, "tolerance"))
		skew := rapid.Int64().Draw(t, "skew") / 4
		var a arrivals
		quickest := time.Duration(-1)
		for at := executor.Instant(1); at < 200; at++ {
			under := time.Duration(rapid.Int64Range(0, 5000).Draw(t, "under way"))
			fresh := a.fresh(time.Unix(0, int64(at)-int64(under)-skew), at, tolerance)
			if fresh && (quickest < 0 || under > quickest+tolerance) {
				t.Fatalf("%d under way is fresh, the quickest before was %d, the tolerance is %d", under, quickest, tolerance)
			}
			if quickest < 0 || under < quickest {
				quickest = under
			}
		}
	})
}
