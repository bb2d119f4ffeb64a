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

// schedulesView is the data of the schedule list.
type schedulesView struct {
	Rows  []scheduleRow
	Pager pager
}

// scheduleRow is a row of the list.
type scheduleRow struct{ *v1.Schedule }

// LiveID returns the id of the block.
func (r scheduleRow) LiveID() string { return "schedule-" + url.PathEscape(r.GetName()) }

// Times describes the times of the schedule.
func (r scheduleRow) Times() string { return scheduleWords(r.GetCron(), r.GetTimezone()) }

// Next returns the next time of the schedule, or nil if there is none.
func (r scheduleRow) Next() *timestamppb.Timestamp {
	if len(r.GetNextTimes()) == 0 {
		return nil
	}
	return r.GetNextTimes()[0]
}

func openSchedules(w *Web, req request) viewSource {
	return newPolledSource(func(ctx context.Context) (viewData, error) {
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

// scheduleView is the data of a schedule page.
type scheduleView struct {
	*v1.Schedule
	Steer    scheduleSteer
	Backfill backfillForm
}

// scheduleSteer holds the buttons of a schedule.
type scheduleSteer struct{ Actions []Action }

// Times returns the times of the schedule, each as text and expression.
func (s scheduleView) Times() []scheduleTime { return timesOf(s.GetCron()) }

// Exceptions returns the excluded times.
func (s scheduleView) Exceptions() []scheduleTime { return timesOf(s.GetExcept()) }

// scheduleTime is a cron expression with its description, which is empty if there is none.
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

// Zone returns the name of the schedule's time zone.
func (s scheduleView) Zone() string { return zoneName(s.GetTimezone()) }

func zoneName(zone string) string {
	if zone == "" {
		return "UTC"
	}
	return zone
}

// Next returns the next times of the schedule.
func (s scheduleView) Next() []nextTime { return nextTimes(s.GetNextTimes(), s.GetTimezone()) }

// nextTime is a future start of a schedule.
type nextTime struct {
	At    *timestamppb.Timestamp
	Local string // in the time zone of the schedule, or "" if that is UTC
}

// localLayout is the layout of times in a schedule's time zone.
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

// zoneOf returns the time zone with a name, or UTC if the name is empty or unknown.
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

// Counts describes how many starts the schedule has made, missed, skipped and so on.
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

// Overlapping describes the policy for a start while another run is open.
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

// loadSchedule reads the data of a schedule page.
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
	return newPolledSource(func(ctx context.Context) (viewData, error) {
		view, err := w.loadSchedule(ctx, req)
		if err != nil {
			return viewData{}, err
		}
		return viewData{"Schedule " + view.GetName(), "schedule", view}, nil
	})
}
