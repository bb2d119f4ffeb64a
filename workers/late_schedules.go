package workers

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"

	"switchyard/activities/library"
	"switchyard/activities/schedules"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/notification"
)

// lateInterval is how often the leader looks for late schedules.
const lateInterval = 30 * time.Second

// lateNotice is how long after the expected time people are told of a late schedule. Temporal keeps the workflow that has told them for
// at least a day.
const lateNotice = 20 * time.Hour

// lateSchedules finds the schedules that have no run that completed by the expected time, for notifications, metrics and the log. No run
// can find them, because a late schedule may have started none. Its owner calls watch in a goroutine; late is safe for concurrent use.
type lateSchedules struct {
	client    client.Client
	library   *library.Library
	schedules *schedules.Schedules
	notify    []*v1.Notification // the entries of the fleet
	outbox    *outbox
	log       *slog.Logger
	count     atomic.Int64
	// told has the time since which each late schedule is late, by id, once people are told.
	told map[string]time.Time
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
		if !l.told[s.GetId()].Equal(since) {
			l.log.Warn("a schedule is late: no run of it has completed by the expected time; `switchyard schedules get` shows its runs",
				"schedule", s.GetName(), "expectedBy", s.GetExpectedBy(), "since", since, "isPaused", s.GetPaused())
			if err := l.tell(ctx, s); err != nil {
				l.log.Warn("cannot tell people about a late schedule; the next look tries again", "schedule", s.GetName(), "error", err)
				since = time.Time{}
			}
		}
		late[s.GetId()] = since
	}
	l.told = late
	l.count.Store(int64(len(late)))
}

// tell tells people about a late schedule, if the definition or the fleet names anyone for it.
func (l *lateSchedules) tell(ctx context.Context, s *v1.Schedule) error {
	since := s.GetLateSince().AsTime()
	if time.Since(since) > lateNotice {
		return nil
	}
	stored, err := l.library.Get(ctx, s.GetWorkflow())
	if errors.Is(err, library.ErrUnknown) {
		return nil // it was deleted
	}
	if err != nil {
		return err
	}
	in := lateNotification(stored.Definition, l.notify, s)
	if in == nil {
		return nil
	}
	return l.outbox.Tell(ctx, in)
}

// lateNotification returns what people are told about a late schedule, or nil if there is no one to tell.
func lateNotification(def *v1.Definition, fleet []*v1.Notification, s *v1.Schedule) *historyv1.NotifyInput {
	entries := notification.Entries(notification.OfRun(&historyv1.RunInput{Definition: def}, fleet), v1.NotifyLate)
	if len(entries) == 0 {
		return nil
	}
	text := "no run has completed by " + s.GetExpectedBy()
	if s.GetPaused() {
		text += "; the schedule is paused, and `switchyard schedules resume " + s.GetName() + "` resumes it"
	}
	return &historyv1.NotifyInput{Event: v1.NotifyLate, At: s.GetLateSince(), Notify: entries, Run: &historyv1.RunView{
		Name: def.GetName(), Trigger: v1.TriggerSchedule, Error: text,
	}}
}
