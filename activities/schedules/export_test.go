package schedules

import (
	"context"
	"time"

	v1 "switchyard/proto/switchyard/v1"
)

// At returns schedules whose clock stands at a time.
func (s *Schedules) At(now time.Time) *Schedules {
	at := *s
	at.now = func() time.Time { return now }
	return &at
}

// HasCompleted reports whether a run of a schedule has completed that was for a time from first on.
func (s *Schedules) HasCompleted(ctx context.Context, of *v1.Schedule, first time.Time) (bool, error) {
	return s.hasCompleted(ctx, of, first)
}
