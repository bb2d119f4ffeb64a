package gateway

import (
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"switchyard/dev/servicetest"
	historyv1 "switchyard/proto/switchyard/history/v1"
	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/names"
)

// TestScheduleOfStoredWorkflow covers the lifecycle of the schedule of a stored workflow.
func TestScheduleOfStoredWorkflow(t *testing.T) {
	t.Parallel()
	f := start(t)
	schedules := dialService(t, f, switchyardv1connect.NewScheduleServiceClient, "")
	workflows := dialService(t, f, switchyardv1connect.NewWorkflowServiceClient, "")
	if s := f.putWorkflow(t, document("timed", "a")).GetSchedule(); s != nil {
		t.Errorf("a definition without a schedule has %v", s)
	}
	refused(t, "get without a schedule", schedules.GetSchedule, &v1.GetScheduleRequest{Name: "timed"}, connect.CodeNotFound, "has no schedule")
	if s := f.putWorkflow(t, document("timed", "a")+"schedule: { cron: 0 0 29 2 *, timezone: Europe/Berlin }\n").GetSchedule(); s.GetPaused() || len(s.GetNextTimes()) == 0 {
		t.Errorf("stored, it is %v", s)
	}
	get := func() *v1.Schedule {
		return answer(t, schedules.GetSchedule, &v1.GetScheduleRequest{Name: "timed"}).GetSchedule()
	}
	if s := get(); !slices.Equal(s.GetCron(), []string{"0 0 29 2 *"}) || s.GetPaused() {
		t.Errorf("it is %v", s)
	}
	times := answer(t, schedules.ListScheduleTimes, &v1.ListScheduleTimesRequest{Name: "timed", Count: 3, From: timestamppb.New(time.Date(2024, 2, 28, 23, 0, 0, 0, time.UTC))})
	var leap []string
	for _, at := range times.GetTimes() {
		leap = append(leap, at.AsTime().Format(time.DateTime))
	}
	if want := []string{"2024-02-28 23:00:00", "2028-02-28 23:00:00", "2032-02-28 23:00:00"}; !slices.Equal(leap, want) || times.GetTimezone() != "Europe/Berlin" {
		t.Errorf("29 February comes at %q, want %q", leap, want)
	}
	paused := do(t, schedules.UpdateSchedule, &v1.UpdateScheduleRequest{Name: "timed", Paused: proto.Bool(true), Reason: "leap day"}).GetSchedule()
	if !paused.GetPaused() || paused.GetNote() != "paused: leap day" {
		t.Errorf("paused, it is %v", paused)
	}
	eventually(t, "both lists show it", func() bool {
		return slices.ContainsFunc(answer(t, schedules.ListSchedules, &v1.ListSchedulesRequest{}).GetItems(), func(s *v1.Schedule) bool { return s.GetName() == "timed" && s.GetPaused() }) &&
			slices.ContainsFunc(answer(t, workflows.ListWorkflows, &v1.ListWorkflowsRequest{}).GetItems(), func(s *v1.StoredWorkflow) bool {
				return s.GetName() == "timed" && s.GetPaused() && slices.Equal(s.GetCron(), []string{"0 0 29 2 *"})
			})
	})
	triggered := do(t, schedules.TriggerSchedule, &v1.TriggerScheduleRequest{Name: "timed", Overlap: "allow"})
	run := triggered.GetRunId()
	terminate(t, run)
	if triggered.GetOutcome() != v1.TriggerStarted {
		t.Errorf("triggered: %v", triggered)
	}
	eventually(t, "runs are listed by what has started them", func() bool {
		ids, _ := f.list(t, &v1.ListRunsRequest{Trigger: v1.TriggerSchedule, Owner: "schedule", Name: "timed"})
		return slices.Equal(ids, []string{run})
	})
	end(t, run, "failed")
	isFailed := func(s *v1.Schedule) bool {
		return s.GetName() == "timed" && len(s.GetRuns()) == 1 && s.GetRuns()[0].GetState() == "failed" && s.GetRuns()[0].GetCompletedAt() != nil
	}
	eventually(t, "the schedule shows how its run has ended", func() bool {
		return isFailed(get()) && slices.ContainsFunc(answer(t, schedules.ListSchedules, &v1.ListSchedulesRequest{}).GetItems(), isFailed)
	})
	if s := do(t, schedules.ResumeSchedule, &v1.ResumeScheduleRequest{Name: "timed"}).GetSchedule(); s.GetPaused() || len(s.GetNextTimes()) == 0 || s.GetRuns()[0].GetRunId() != run {
		t.Errorf("resumed, it is %v", s)
	}
	do(t, workflows.DeleteWorkflow, &v1.DeleteWorkflowRequest{Name: "timed"})
	refused(t, "pause what is deleted", schedules.PauseSchedule, &v1.PauseScheduleRequest{Name: "timed"}, connect.CodeNotFound)
}

// TestForeignScheduleIsShownAsItIs shows a schedule that was created and paused with Temporal's own client.
func TestForeignScheduleIsShownAsItIs(t *testing.T) {
	t.Parallel()
	schedules := dialService(t, start(t), switchyardv1connect.NewScheduleServiceClient, "")
	all := func(from, to int) []client.ScheduleRange { return []client.ScheduleRange{{Start: from, End: to}} }
	handle, err := temporalClient.ScheduleClient().Create(t.Context(), client.ScheduleOptions{
		ID: "by hand/1", Note: "made by hand", Paused: true, RemainingActions: 3,
		Spec: client.ScheduleSpec{
			Calendars: []client.ScheduleCalendarSpec{{
				Second: all(30, 0), Minute: []client.ScheduleRange{{Start: 0, End: 59, Step: 15}}, Hour: all(8, 18), DayOfMonth: all(1, 31), Month: all(1, 12), DayOfWeek: all(1, 5),
			}},
			Intervals: []client.ScheduleIntervalSpec{{Every: 36 * time.Hour, Offset: 5 * time.Minute}},
			Skip:      []client.ScheduleCalendarSpec{{Minute: all(0, 59), Hour: all(0, 23), DayOfMonth: all(24, 26), Month: all(12, 0), DayOfWeek: all(0, 6)}},
			Jitter:    time.Minute, TimeZoneName: "America/New_York", EndAt: time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC),
		},
		Action: &client.ScheduleWorkflowAction{ID: "hand", Workflow: names.RunWorkflow, TaskQueue: names.ControlQueue, Args: []any{&historyv1.RunInput{Workflow: "nightly"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := answer(t, schedules.GetSchedule, &v1.GetScheduleRequest{Name: "by hand/1"}).GetSchedule()
	if want := []string{"30 */15 8-18 * * 1-5 *", "@every 36h/5m"}; !slices.Equal(s.GetCron(), want) {
		t.Errorf("its times are %q, want %q", s.GetCron(), want)
	}
	if !slices.Equal(s.GetExcept(), []string{"* * 24-26 12 *"}) || s.GetWorkflow() != "nightly" || s.GetTimezone() != "America/New_York" || s.GetJitter() != "1m" ||
		s.GetRemaining() != 3 || s.GetEndAt().AsTime().Year() != 2031 || !s.GetPaused() || s.GetNote() != "made by hand" || s.GetOverlap() != "skip" {
		t.Errorf("it is %v", s)
	}
	if err := handle.Unpause(t.Context(), client.ScheduleUnpauseOptions{Note: "off we go"}); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the list shows who has resumed it", func() bool {
		return slices.ContainsFunc(answer(t, schedules.ListSchedules, &v1.ListSchedulesRequest{}).GetItems(), func(s *v1.Schedule) bool {
			return s.GetName() == "by hand/1" && !s.GetPaused() && s.GetNote() == "off we go" && len(s.GetNextTimes()) > 0
		})
	})
	if err := handle.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestSubmitWarnsOfSchedule checks that the submission of an unstored definition with a schedule returns a
// warning with its position.
func TestSubmitWarnsOfSchedule(t *testing.T) {
	t.Parallel()
	f := start(t)
	text := document("clocked", "a") + "schedule: { cron: '@yearly', paused: true }\n"
	req := submitRequest(text)
	req.File = "c.yaml"
	unstored := do(t, f.client.SubmitRun, req)
	if w := unstored.GetWarnings(); len(w) != 1 || w[0].GetPath() != "schedule" || w[0].GetLine() != 4 || w[0].GetColumn() != 1 || w[0].GetFile() != "c.yaml" || !strings.Contains(w[0].GetHint(), "workflows put") {
		t.Errorf("the warnings are %v", w)
	}
	f.putWorkflow(t, text)
	stored := do(t, f.client.SubmitRun, &v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Workflow{Workflow: "clocked"}})
	if w := stored.GetWarnings(); len(w) != 0 {
		t.Errorf("a stored workflow is submitted with %v", w)
	}
	terminate(t, unstored.GetId(), stored.GetId())
}

// TestSchedulesAreListedPageByPage lists one schedule per page, each exactly once.
func TestSchedulesAreListedPageByPage(t *testing.T) {
	t.Parallel()
	f := start(t)
	schedules := dialService(t, f, switchyardv1connect.NewScheduleServiceClient, "")
	for _, name := range []string{"paged-b", "paged-a", "paged-c"} {
		f.putWorkflow(t, document(name, "a")+"schedule: { cron: '@yearly' }\n")
	}
	eventually(t, "all are listed", func() bool {
		var names []string
		for _, page := range servicetest.Pages(t, t.Context(), schedules.ListSchedules, &v1.ListSchedulesRequest{PageSize: 1}) {
			for _, s := range page.GetItems() {
				if strings.HasPrefix(s.GetName(), "paged-") {
					names = append(names, s.GetName())
				}
			}
		}
		return slices.Equal(names, []string{"paged-a", "paged-b", "paged-c"})
	})
}
