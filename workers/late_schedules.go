package workers

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"switchyard/activities/schedules"
)

// lateInterval is how often the leader looks for late schedules.
const lateInterval = 30 * time.Second

// lateSchedules finds the schedules of which no run has completed by the expected time, for metrics and the log. A run cannot find
// them, because there may be none. Its owner calls watch in a goroutine; late is safe for concurrent use.
type lateSchedules struct {
	schedules *schedules.Schedules
	log       *slog.Logger
	count     atomic.Int64
	// logged has the time since which each late schedule is late, by id, once that is logged.
	logged map[string]time.Time
}

// late returns the number of such schedules at the last look.
func (l *lateSchedules) late() int { return int(l.count.Load()) }

// watch looks for late schedules until ctx ends.
func (l *lateSchedules) watch(ctx context.Context) {
	ticker := time.NewTicker(lateInterval)
	defer ticker.Stop()
	for {
		l.look(ctx)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

func (l *lateSchedules) look(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lateInterval)
	defer cancel()
	all, err := l.schedules.List(ctx)
	if err == nil {
		err = l.schedules.AddLateness(ctx, all...)
	}
	if err != nil {
		l.log.Debug("late schedules could not be looked for", "error", err)
		return
	}
	late := map[string]time.Time{}
	for _, s := range all {
		if s.GetLateSince() == nil {
			continue
		}
		since := s.GetLateSince().AsTime()
		if late[s.GetId()] = since; !l.logged[s.GetId()].Equal(since) {
			l.log.Warn("a schedule is late: no run of it has completed by the expected time; `switchyard schedules get` shows its runs",
				"schedule", s.GetName(), "expectedBy", s.GetExpectedBy(), "since", since, "isPaused", s.GetPaused())
		}
	}
	l.logged = late
	l.count.Store(int64(len(late)))
}
