package web

import (
	"context"
	"net/url"
	"strings"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/workflows/cron"
)

// schedulesView is what the list of schedules shows.
type schedulesView struct {
	Rows  []scheduleRow
	Pager pager
}

// scheduleRow is a line of the list.
type scheduleRow struct{ *v1.Schedule }

// LiveID returns the id of the block.
func (r scheduleRow) LiveID() string { return "schedule-" + url.PathEscape(r.GetName()) }

// Times returns its times in words.
func (r scheduleRow) Times() string { return scheduleWords(r.GetCron(), r.GetTimezone()) }

// Next returns its next time, or nil.
func (r scheduleRow) Next() *timestamppb.Timestamp {
	if len(r.GetNextTimes()) == 0 {
		return nil
	}
	return r.GetNextTimes()[0]
}

func openSchedules(w *Web, req request) viewSource {
	return polled(func(ctx context.Context) (viewData, error) {
		res, err := w.services.schedules.ListSchedules(ctx, connect.NewRequest(&v1.ListSchedulesRequest{PageSize: workflowsPage, PageToken: req.query.Get("page")}))
		if err != nil {
			return viewData{}, err
		}
		view := schedulesView{Pager: pager{Noun: "schedule", Next: res.Msg.GetNextPageToken()}}
		for _, s := range res.Msg.GetItems() {
			view.Rows = append(view.Rows, scheduleRow{s})
		}
		return viewData{"Schedules", "schedules", view}, nil
	})
}

// scheduleView is what the page of a schedule shows.
type scheduleView struct {
	*v1.Schedule
	Steer    scheduleSteer
	Backfill backfillForm
}

// scheduleSteer are the buttons of a schedule.
type scheduleSteer struct{ Actions []Action }

// Times returns the times of the schedule in words, each with its expression.
func (s scheduleView) Times() []scheduleTime { return timesOf(s.GetCron()) }

// But returns the times that are left out.
func (s scheduleView) But() []scheduleTime { return timesOf(s.GetExcept()) }

// scheduleTime is an expression of a schedule.
type scheduleTime struct{ Words, Expression string }

func timesOf(expressions []string) (times []scheduleTime) {
	for _, text := range expressions {
		words := cron.Words(text)
		if words == text {
			words = ""
		}
		times = append(times, scheduleTime{words, text})
	}
	return times
}

// Zone returns the time zone of the schedule.
func (s scheduleView) Zone() string { return zoneName(s.GetTimezone()) }

func zoneName(zone string) string {
	if zone == "" {
		return "UTC"
	}
	return zone
}

// Next returns the next times of the schedule, in its zone and in UTC.
func (s scheduleView) Next() []nextTime { return nextTimes(s.GetNextTimes(), s.GetTimezone()) }

// nextTime is a time at which a schedule starts a run.
type nextTime struct {
	At    *timestamppb.Timestamp
	Local string // in the zone of the schedule, or "" if that is UTC
}

// localLayout is that of times in the zone of a schedule.
const localLayout = "Mon 2006-01-02 15:04:05 MST"

func nextTimes(times []*timestamppb.Timestamp, zone string) (next []nextTime) {
	in := zoneOf(zone)
	for _, at := range times {
		t := nextTime{At: at}
		if in != time.UTC {
			t.Local = at.AsTime().In(in).Format(localLayout)
		}
		next = append(next, t)
	}
	return next
}

// zoneOf returns the zone of a schedule. One that is not known here is taken for UTC.
func zoneOf(name string) *time.Location {
	if name == "" || strings.EqualFold(name, "UTC") {
		return time.UTC
	}
	zone, err := cron.Zone(name)
	if err != nil {
		return time.UTC
	}
	return zone
}

// Counts returns what the schedule has done, in words.
func (s scheduleView) Counts() []string {
	words := []string{plural(s.GetStarted(), "run") + " started"}
	for _, count := range []struct {
		n    int32
		what string
	}{
		{s.GetMissed(), "missed"}, {s.GetSkipped(), "skipped for an open run"}, {s.GetWaiting(), "waiting"}, {s.GetDropped(), "dropped, because too many waited"},
	} {
		if count.n > 0 {
			words = append(words, plural(count.n, "start")+" "+count.what)
		}
	}
	if s.Remaining != nil {
		words = append(words, plural(s.GetRemaining(), "run")+" to come")
	}
	return words
}

// Overlapping returns what becomes of a start while a run is open, in words.
func (s scheduleView) Overlapping() string {
	words := map[string]string{
		"skip": "the start is skipped", "queue": "the start waits for the runs before it", "replace": "the open runs are cancelled first",
		"allow": "both run", "buffer_one": "one start waits", "terminate": "the open runs are terminated first",
	}[s.GetOverlap()]
	if words == "" {
		return s.GetOverlap()
	}
	return s.GetOverlap() + ": " + words
}

// loadSchedule returns what the page of a schedule shows.
func (w *Web) loadSchedule(ctx context.Context, req request) (scheduleView, error) {
	name := req.values["schedule"]
	res, err := w.services.schedules.GetSchedule(ctx, connect.NewRequest(&v1.GetScheduleRequest{Name: name}))
	if err != nil {
		return scheduleView{}, err
	}
	s := res.Msg.GetSchedule()
	steer := newAction("pause-schedule", name, req.caller, "schedule", name)
	if s.GetPaused() {
		steer = newAction("resume-schedule", name, req.caller, "schedule", name)
	}
	return scheduleView{
		s, scheduleSteer{[]Action{steer, newAction("trigger-schedule", name, req.caller, "schedule", name)}}, newBackfillForm(s, req.caller),
	}, nil
}

func openSchedule(w *Web, req request) viewSource {
	return polled(func(ctx context.Context) (viewData, error) {
		view, err := w.loadSchedule(ctx, req)
		if err != nil {
			return viewData{}, err
		}
		return viewData{"Schedule " + view.GetName(), "schedule", view}, nil
	})
}
