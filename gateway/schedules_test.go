package gateway

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	v1 "switchyard/proto/switchyard/v1"
	"switchyard/proto/switchyard/v1/switchyardv1connect"
	"switchyard/workflows/names"
)

// scheduleClients returns clients for the schedules and stored workflows of a gateway.
func (f *fixture) scheduleClients(t *testing.T) (switchyardv1connect.ScheduleServiceClient, switchyardv1connect.WorkflowServiceClient) {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c := &http.Client{Transport: transport}
	return switchyardv1connect.NewScheduleServiceClient(c, f.server.URL()), switchyardv1connect.NewWorkflowServiceClient(c, f.server.URL())
}

// TestScheduleOfStoredWorkflow covers the lifecycle of the schedule of a stored workflow.
func TestScheduleOfStoredWorkflow(t *testing.T) {
	t.Parallel()
	f := start(t)
	schedules, workflows := f.scheduleClients(t)
	put := func(text string) *v1.Schedule {
		t.Helper()
		res, err := workflows.PutWorkflow(t.Context(), connect.NewRequest(&v1.PutWorkflowRequest{
			Source: &v1.PutWorkflowRequest_Document{Document: text}, Replace: true,
		}))
		if err != nil {
			t.Fatal(err)
		}
		return res.Msg.GetSchedule()
	}
	if s := put(document("timed", "a")); s != nil {
		t.Errorf("a definition without a schedule has %v", s)
	}
	_, err := schedules.GetSchedule(t.Context(), connect.NewRequest(&v1.GetScheduleRequest{Name: "timed"}))
	if wantCode(t, "get without a schedule", err, connect.CodeNotFound); !strings.Contains(err.Error(), "has no schedule") {
		t.Error(err)
	}
	if s := put(document("timed", "a") + "schedule: { cron: 0 0 29 2 *, timezone: Europe/Berlin }\n"); s.GetPaused() || len(s.GetNextTimes()) == 0 {
		t.Errorf("stored, it is %v", s)
	}
	got, err := schedules.GetSchedule(t.Context(), connect.NewRequest(&v1.GetScheduleRequest{Name: "timed"}))
	if err != nil || !slices.Equal(got.Msg.GetSchedule().GetCron(), []string{"0 0 29 2 *"}) || got.Msg.GetSchedule().GetPaused() {
		t.Fatal(got, err)
	}
	times, err := schedules.ListScheduleTimes(t.Context(), connect.NewRequest(&v1.ListScheduleTimesRequest{
		Name: "timed", Count: 3, From: timestamppb.New(time.Date(2024, 2, 28, 23, 0, 0, 0, time.UTC)),
	}))
	if err != nil {
		t.Fatal(err)
	}
	var leap []string
	for _, at := range times.Msg.GetTimes() {
		leap = append(leap, at.AsTime().Format(time.DateTime))
	}
	if want := []string{"2024-02-28 23:00:00", "2028-02-28 23:00:00", "2032-02-28 23:00:00"}; !slices.Equal(leap, want) || times.Msg.GetTimezone() != "Europe/Berlin" {
		t.Errorf("29 February comes at %q, want %q", leap, want)
	}
	paused, err := schedules.UpdateSchedule(t.Context(), connect.NewRequest(&v1.UpdateScheduleRequest{Name: "timed", Paused: proto.Bool(true), Reason: "leap day"}))
	if err != nil || !paused.Msg.GetSchedule().GetPaused() || paused.Msg.GetSchedule().GetNote() != "paused: leap day" {
		t.Fatal(paused, err)
	}
	eventually(t, "both lists show it", func() bool {
		listed, err := schedules.ListSchedules(t.Context(), connect.NewRequest(&v1.ListSchedulesRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		stored, err := workflows.ListWorkflows(t.Context(), connect.NewRequest(&v1.ListWorkflowsRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(listed.Msg.GetItems(), func(s *v1.Schedule) bool { return s.GetName() == "timed" && s.GetPaused() }) &&
			slices.ContainsFunc(stored.Msg.GetItems(), func(s *v1.StoredWorkflow) bool {
				return s.GetName() == "timed" && s.GetPaused() && slices.Equal(s.GetCron(), []string{"0 0 29 2 *"})
			})
	})
	triggered, err := schedules.TriggerSchedule(t.Context(), connect.NewRequest(&v1.TriggerScheduleRequest{Name: "timed", Overlap: "allow"}))
	if err != nil || triggered.Msg.GetOutcome() != v1.TriggerStarted {
		t.Fatal(triggered, err)
	}
	run := f.get(t, triggered.Msg.GetRunId())
	eventually(t, "runs are listed by what has started them", func() bool {
		listed, err := f.client.ListRuns(t.Context(), connect.NewRequest(&v1.ListRunsRequest{Trigger: v1.TriggerSchedule, Owner: "schedule", Name: "timed"}))
		if err != nil {
			t.Fatal(err)
		}
		return len(listed.Msg.GetItems()) == 1 && listed.Msg.GetItems()[0].GetId() == run.GetId() && listed.Msg.GetItems()[0].GetSubmittedBy() == "schedule"
	})
	end(t, run.GetId(), "failed")
	eventually(t, "the schedule shows how its run has ended", func() bool {
		one, err := schedules.GetSchedule(t.Context(), connect.NewRequest(&v1.GetScheduleRequest{Name: "timed"}))
		if err != nil {
			t.Fatal(err)
		}
		all, err := schedules.ListSchedules(t.Context(), connect.NewRequest(&v1.ListSchedulesRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		isFailed := func(s *v1.Schedule) bool {
			return s.GetName() == "timed" && len(s.GetRuns()) == 1 && s.GetRuns()[0].GetState() == "failed" && s.GetRuns()[0].GetCompletedAt() != nil
		}
		return isFailed(one.Msg.GetSchedule()) && slices.ContainsFunc(all.Msg.GetItems(), isFailed)
	})
	resumed, err := schedules.ResumeSchedule(t.Context(), connect.NewRequest(&v1.ResumeScheduleRequest{Name: "timed"}))
	if err != nil || resumed.Msg.GetSchedule().GetPaused() || len(resumed.Msg.GetSchedule().GetNextTimes()) == 0 ||
		resumed.Msg.GetSchedule().GetRuns()[0].GetRunId() != run.GetId() {
		t.Fatal(resumed, err)
	}
	if _, err := workflows.DeleteWorkflow(t.Context(), connect.NewRequest(&v1.DeleteWorkflowRequest{Name: "timed"})); err != nil {
		t.Fatal(err)
	}
	_, err = schedules.PauseSchedule(t.Context(), connect.NewRequest(&v1.PauseScheduleRequest{Name: "timed"}))
	wantCode(t, "pause what is deleted", err, connect.CodeNotFound)
}

// TestForeignScheduleIsShownAsItIs shows a schedule that was created and paused with Temporal's own client.
func TestForeignScheduleIsShownAsItIs(t *testing.T) {
	t.Parallel()
	f := start(t)
	schedules, _ := f.scheduleClients(t)
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
		Action: &client.ScheduleWorkflowAction{ID: "hand", Workflow: names.RunWorkflow, TaskQueue: names.ControlQueue, Args: []any{&v1.RunInput{Workflow: "nightly"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	got, err := schedules.GetSchedule(t.Context(), connect.NewRequest(&v1.GetScheduleRequest{Name: "by hand/1"}))
	if err != nil {
		t.Fatal(err)
	}
	s := got.Msg.GetSchedule()
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
		listed, err := schedules.ListSchedules(t.Context(), connect.NewRequest(&v1.ListSchedulesRequest{}))
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(listed.Msg.GetItems(), func(s *v1.Schedule) bool {
			return s.GetName() == "by hand/1" && !s.GetPaused() && s.GetNote() == "off we go" && len(s.GetNextTimes()) > 0
		})
	})
	if err := handle.Delete(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// TestBackfillRefusesInvalidSpans checks the errors for invalid time spans of a backfill.
func TestBackfillRefusesInvalidSpans(t *testing.T) {
	t.Parallel()
	schedules, _ := start(t).scheduleClients(t)
	now := time.Now()
	for what, span := range map[string][2]*timestamppb.Timestamp{
		"before":        {timestamppb.New(now), timestamppb.New(now.Add(-time.Hour))},
		"in the future": {timestamppb.New(now), timestamppb.New(now.Add(time.Hour))},
		"required":      {nil, timestamppb.New(now)},
		"out of range":  {{Seconds: 1 << 60}, timestamppb.New(now)},
	} {
		_, err := schedules.BackfillSchedule(t.Context(), connect.NewRequest(&v1.BackfillScheduleRequest{Name: "x", From: span[0], To: span[1]}))
		if wantCode(t, what, err, connect.CodeInvalidArgument); !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestSubmitWarnsOfSchedule checks that the submission of an unstored definition with a schedule returns a
// warning with its position.
func TestSubmitWarnsOfSchedule(t *testing.T) {
	t.Parallel()
	f := start(t)
	_, workflows := f.scheduleClients(t)
	text := document("clocked", "a") + "schedule: { cron: '@yearly', paused: true }\n"
	res, err := f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Document{Document: text}, File: "c.yaml"}))
	if err != nil || len(res.Msg.GetWarnings()) != 1 {
		t.Fatal(res, err)
	}
	if w := res.Msg.GetWarnings()[0]; w.GetPath() != "schedule" || w.GetLine() != 4 || w.GetColumn() != 1 || w.GetFile() != "c.yaml" || !strings.Contains(w.GetHint(), "workflows put") {
		t.Errorf("the warning is %v", w)
	}
	end(t, res.Msg.GetId(), "completed")
	if _, err := workflows.PutWorkflow(t.Context(), connect.NewRequest(&v1.PutWorkflowRequest{Source: &v1.PutWorkflowRequest_Document{Document: text}})); err != nil {
		t.Fatal(err)
	}
	res, err = f.client.SubmitRun(t.Context(), connect.NewRequest(&v1.SubmitRunRequest{Source: &v1.SubmitRunRequest_Workflow{Workflow: "clocked"}}))
	if err != nil || len(res.Msg.GetWarnings()) != 0 {
		t.Errorf("a stored workflow is submitted with %v, %v", res, err)
	}
	end(t, res.Msg.GetId(), "completed")
}

// TestSchedulesAreListedPageByPage lists one schedule per page, each exactly once.
func TestSchedulesAreListedPageByPage(t *testing.T) {
	t.Parallel()
	f := start(t)
	schedules, workflows := f.scheduleClients(t)
	for _, name := range []string{"paged-b", "paged-a", "paged-c"} {
		text := document(name, "a") + "schedule: { cron: '@yearly' }\n"
		if _, err := workflows.PutWorkflow(t.Context(), connect.NewRequest(&v1.PutWorkflowRequest{Source: &v1.PutWorkflowRequest_Document{Document: text}})); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "all are listed", func() bool {
		var names []string
		for token := ""; ; {
			page, err := schedules.ListSchedules(t.Context(), connect.NewRequest(&v1.ListSchedulesRequest{PageSize: 1, PageToken: token}))
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range page.Msg.GetItems() {
				if strings.HasPrefix(s.GetName(), "paged-") {
					names = append(names, s.GetName())
				}
			}
			if token = page.Msg.GetNextPageToken(); token == "" {
				return slices.Equal(names, []string{"paged-a", "paged-b", "paged-c"})
			}
		}
	})
	_, err := schedules.ListSchedules(t.Context(), connect.NewRequest(&v1.ListSchedulesRequest{PageToken: "bm9uZQ"}))
	wantCode(t, "the token of another list", err, connect.CodeInvalidArgument)
}
