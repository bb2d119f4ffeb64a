package web

import (
	"net/http"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/dev/servicetest"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
)

const backfillSchedule = switchyardv1connect.ScheduleServiceBackfillScheduleProcedure

func at(hour int) *timestamppb.Timestamp {
	return timestamppb.New(time.Date(2026, 3, 5, hour, 0, 0, 0, time.UTC))
}

func nightly() *v1.Schedule {
	return &v1.Schedule{
		Name: "nightly", Id: "sy-schedule-nightly", Workflow: "nightly", Cron: []string{"0 2 * * MON-FRI"}, Timezone: "Europe/Berlin", Overlap: "queue", CatchUp: "1h",
		Note: hostile, NextTimes: []*timestamppb.Timestamp{at(1), at(25)}, Started: 7, Missed: 1, Waiting: 2, OpenRuns: []string{"nightly-7"}, CreatedAt: at(0),
		Runs: []*v1.ScheduledRun{
			{RunId: "nightly-7", ScheduledAt: at(1), StartedAt: at(1), State: v1.RunRunning},
			{RunId: "nightly-6", ScheduledAt: at(0), StartedAt: at(0), State: v1.RunFailed, CompletedAt: at(1)},
			{RunId: "nightly-5", ScheduledAt: at(0), StartedAt: at(0)},
		},
	}
}

func withSchedule(s *v1.Schedule) *servicetest.Fake {
	f := &servicetest.Fake{}
	servicetest.AnswerWith(f, switchyardv1connect.ScheduleServiceListSchedulesProcedure, &v1.ListSchedulesResponse{Items: []*v1.Schedule{s}})
	servicetest.AnswerWith(f, switchyardv1connect.ScheduleServiceGetScheduleProcedure, &v1.GetScheduleResponse{Schedule: s})
	return f
}

func TestSchedulesAreListed(t *testing.T) {
	page := newVisitor(t, withSchedule(nightly()), v1.RoleViewer).get("/ui/schedules")
	mustContain(t, page.text("#schedules"), "active", "nightly", "at 02:00 on Monday to Friday (Europe/Berlin)", "running", "failed", "nightly-5")
	mustBeHarmless(t, page)
}

func TestScheduleShowsItsTimesAndRuns(t *testing.T) {
	page := newVisitor(t, withSchedule(nightly()), v1.RoleViewer).get("/ui/schedules/nightly")
	mustContain(t, page.text("#schedule-facts"), "active", "at 02:00 on Monday to Friday 0 2 * * MON-FRI", "Europe/Berlin",
		"queue: the start waits for the runs before it", "caught up to 1h late", "7 runs started, 1 start missed, 2 starts waiting", "nightly-7")
	mustContain(t, page.text("#schedule-next"), "2026-03-05 01:00:00 UTC", "Thu 2026-03-05 02:00:00 CET")
	mustContain(t, page.text("#schedule-runs"), "running", "failed", "not known", "nightly-5")
	mustContain(t, page.text("#schedule-steer"), "Pause needs the role operator; you have the role viewer")
	mustBeHarmless(t, page)
}

func TestPausedScheduleIsResumed(t *testing.T) {
	paused := nightly()
	paused.Paused, paused.NextTimes = true, nil
	f := withSchedule(paused)
	servicetest.AnswerWith(f, switchyardv1connect.ScheduleServiceResumeScheduleProcedure, &v1.ResumeScheduleResponse{})
	v := newVisitor(t, f, v1.RoleOperator)
	mustContain(t, v.get("/ui/schedules/nightly").text("#schedule-next"), "None while it is paused.")
	mustContain(t, v.submit("/ui/schedules/nightly", "resume-schedule").message(), "has been resumed. Missed times are skipped.")
}

func TestBackfillAsksBeforeItStartsRuns(t *testing.T) {
	f := withSchedule(nightly())
	servicetest.AnswerWith(f, switchyardv1connect.ScheduleServiceListScheduleTimesProcedure, &v1.ListScheduleTimesResponse{Times: []*timestamppb.Timestamp{at(1), at(25), at(49)}})
	servicetest.AnswerWith(f, backfillSchedule, &v1.BackfillScheduleResponse{Times: []*timestamppb.Timestamp{at(1)}, Existing: 1})
	v := newVisitor(t, f, v1.RoleOperator)
	const action = "/ui/schedules/nightly"
	res := v.send(v.get("/ui/schedules/nightly"), action, "", "from", "2026-03-05T00:00", "to", "2026-03-06T12:00", "overlap", "allow")
	if res.status != http.StatusOK || len(servicetest.Requests[v1.BackfillScheduleRequest](f)) > 0 {
		t.Fatalf("answered %d: %s", res.status, textOf(res.doc))
	}
	mustContain(t, res.text("#backfill-question"), "Start 2 runs, for the times from 2026-03-05T00:00 to 2026-03-06T12:00 (Europe/Berlin)")
	res = v.send(res, action, "") // the first form is the confirmation
	if res.status != http.StatusSeeOther {
		t.Fatalf("answered %d: %s", res.status, textOf(res.doc))
	}
	got := servicetest.Requests[v1.BackfillScheduleRequest](f)[0]
	if want := time.Date(2026, 3, 4, 23, 0, 0, 0, time.UTC); !got.GetFrom().AsTime().Equal(want) || got.GetOverlap() != "allow" {
		t.Errorf("the backfill is %v", got)
	}
	mustContain(t, v.get("/ui/schedules/nightly").text("#notice"), "starts 1 run. 1 time in the range already had a run.")
}

func TestBackfillFormKeepsAnInvalidRange(t *testing.T) {
	v := newVisitor(t, withSchedule(nightly()), v1.RoleOperator)
	for _, test := range []struct{ from, to, want string }{
		{"yesterday", "2026-03-05T00:00", `From is "yesterday"`},
		{"2026-03-05T00:00", "2026-03-04T00:00", "ends before it starts"},
	} {
		res := v.send(v.get("/ui/schedules/nightly"), "/ui/schedules/nightly", "", "from", test.from, "to", test.to)
		if res.status != http.StatusBadRequest {
			t.Errorf("answered %d", res.status)
		}
		mustContain(t, res.text(".error-text"), test.want)
		if got := typedIn(res.all("form.filters")[0]).Get("from"); got != test.from {
			t.Errorf("kept %q", got)
		}
	}
}
